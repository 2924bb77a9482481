// Looks up the country of an address in a database in the MaxMind format.
import { createRequire } from 'node:module';
import type * as Maxmind from 'maxmind';
import type { CountryResponse } from 'maxmind';
import { readRegularFile } from '../../config/given-files.js';

/** Loads maxmind only when a database is configured, because the import slows down startup. */
const maxmind = (): typeof Maxmind => createRequire(import.meta.url)('maxmind') as typeof Maxmind;

/** @throws Error for another format */
const openDatabase = (bytes: Buffer): Maxmind.Reader<CountryResponse> =>
  new (maxmind().Reader)<CountryResponse>(bytes);

/** Returns what is wrong with a database. @throws Error if it cannot be read */
export function databaseProblem(path: string): string | undefined {
  const bytes = readRegularFile(path);
  try {
    openDatabase(bytes);
    return undefined;
  } catch {
    return `${path} is not a database in the MaxMind format`;
  }
}

/** Unwraps the IPv4-mapped IPv6 address that a dual-stack socket reports for an IPv4 client. */
export const bareAddress = (text: string): string => text.replace(/^::ffff:(?=\d+\.)/i, '');

type CountryOf = (address: string) => string | undefined;

/** Loads the whole database into memory, so lookups need no file access. */
export function openCountries(path: string): CountryOf {
  const { validate } = maxmind();
  const reader = openDatabase(readRegularFile(path));
  return function countryOf(address) {
    const text = bareAddress(address);
    if (!validate(text)) return undefined;
    try {
      const found = reader.get(text);
      return found?.country?.iso_code ?? found?.registered_country?.iso_code;
    } catch {
      // The address leads to a damaged part of the database.
      return undefined;
    }
  };
}
