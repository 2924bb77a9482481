// Looks up the country of an address in a database of the MaxMind format.
import { readFileSync } from 'node:fs';
import { type CountryResponse, Reader, validate } from 'maxmind';

export type CountryOf = (address: string) => string | undefined;

/** Read whole: a look-up opens no file. A socket names an IPv4 client in the form of IPv6. */
export function openCountries(path: string): CountryOf {
  const reader = new Reader<CountryResponse>(readFileSync(path));
  return function countryOf(address) {
    const text = address.replace(/^::ffff:(?=\d+\.)/i, '');
    if (!validate(text)) return undefined;
    const found = reader.get(text);
    return found?.country?.iso_code ?? found?.registered_country?.iso_code;
  };
}
