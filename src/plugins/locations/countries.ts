// Looks up the country of an address in a database in the MaxMind format.
import { createRequire } from 'node:module';
import type * as Maxmind from 'maxmind';
import type { CountryResponse } from 'maxmind';
import { readRegularFile } from '../../config/given-files.js';
import { tryDecode } from '../../handle/bytes.js';
import { plainAddress } from '../../http/client-address.js';

/** Loads maxmind only when a database is configured, because the import slows down startup. */
const maxmind = (): typeof Maxmind => createRequire(import.meta.url)('maxmind') as typeof Maxmind;

/** @throws Error for another format */
const openDatabase = (bytes: Buffer): Maxmind.Reader<CountryResponse> =>
  new (maxmind().Reader)<CountryResponse>(bytes);

export const databaseProblem = (path: string): string | undefined =>
  tryDecode(openDatabase, readRegularFile(path)) === undefined
    ? `${path} is not a database in the MaxMind format`
    : undefined;

/** Loads the whole database into memory, so lookups need no file access. */
export function openCountries(path: string) {
  const { validate } = maxmind();
  const reader = openDatabase(readRegularFile(path));
  return function countryOf(address: string): string | undefined {
    const text = plainAddress(address);
    if (!validate(text)) return undefined;
    // The address may lead to a damaged part of the database.
    const found = tryDecode((given) => reader.get(given), text);
    return found?.country?.iso_code ?? found?.registered_country?.iso_code;
  };
}
