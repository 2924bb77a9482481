// What else than the record the choice of a location depends on, for the headers for caches. Pure.
import type { Candidates } from './candidates.js';

export interface Variation {
  /** Names for `Vary`. */
  headers: readonly string[];
  /** Clients at other addresses may get another location. */
  isByAddress: boolean;
}

export const NO_VARIATION: Variation = { headers: [], isByAddress: false };

/**
 * The same for every request of the list. HDLProxy names only Accept, and only with an `http_role` for it: a cache
 * behind it sends Turtle to browsers.
 */
export function variationOf(
  { locations, chooseBy, mayHave: has }: Candidates,
  { looksUpCountry }: { looksUpCountry: boolean },
): Variation {
  if (locations.length <= 1) return NO_VARIATION;
  return {
    headers: chooseBy.includes('locatt')
      ? Object.entries(VARIES_BY).flatMap(([header, by]) => (by.some((pair) => has(...pair)) ? [header] : []))
      : [],
    isByAddress:
      (chooseBy.includes('address') && has('addresses')) ||
      (looksUpCountry && chooseBy.includes('country') && has('country')),
  };
}

/** Attributes, and their values where only one of them matters, by the header that selects them. */
const VARIES_BY: Readonly<Record<string, readonly [name: string, value?: string][]>> = {
  Accept: [['http_role'], ['ctype'], ['media-type']],
  'Accept-Language': [['language']],
  // Without a type in Accept, browsers are known by their name.
  'User-Agent': [
    ['http_role', 'browser'],
    ['http_role', 'no_conneg'],
    ['ctype', 'text/html'],
    ['media-type', 'text/html'],
  ],
};
