// Looks up the country of an address in a database of the MaxMind format.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type * as Maxmind from 'maxmind';
import type { CountryResponse } from 'maxmind';

/** Loaded when it is used: the package takes 40 ms of a start. */
const maxmind = (): typeof Maxmind => createRequire(import.meta.url)('maxmind') as typeof Maxmind;

export type CountryOf = (address: string) => string | undefined;

/** Read whole: a look-up opens no file. A socket names an IPv4 client in the form of IPv6. */
export function openCountries(path: string): CountryOf {
  const { Reader, validate } = maxmind();
  const reader = new Reader<CountryResponse>(readFileSync(path));
  return function countryOf(address) {
    const text = address.replace(/^::ffff:(?=\d+\.)/i, '');
    if (!validate(text)) return undefined;
    const found = reader.get(text);
    return found?.country?.iso_code ?? found?.registered_country?.iso_code;
  };
}
