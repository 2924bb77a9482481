// The values of one handle that take part in redirects: 10320/loc, 10320/links and 10320/headers.
import type { HandleValue } from '../../handle/value.js';
import { isFamily, textOf } from '../values.js';
import type { LocationList, ParseLocationList } from './location-list.js';

export interface HandleLists {
  /** Of the 10320/loc values, in the order of the record. */
  lists: readonly LocationList[];
  /** Of the 10320/links values. */
  links: readonly LocationList[];
  /** The texts of the 10320/headers values. */
  headers: readonly string[];
}

/** A broken value is left out; HDLProxy responds with 500 when it is the record's own. */
export function listsIn(values: readonly HandleValue[], parse: ParseLocationList): HandleLists {
  const textsOf = (type: string): string[] =>
    values.filter((value) => isFamily(value, type)).map((value) => textOf(value) ?? '');
  const parsed = (type: string): LocationList[] =>
    textsOf(type)
      .map(parse)
      .filter((list) => list !== undefined);
  return {
    lists: parsed('10320/LOC'),
    links: parsed('10320/LINKS'),
    headers: textsOf('10320/HEADERS'),
  };
}

/** Only records with a URL or a location are redirected (recordings "links: 10320/links alone", "legacy: 0.TYPE/URL alone"). */
export const mayRedirect = (values: readonly HandleValue[]): boolean =>
  values.some((value) => isFamily(value, 'URL') || isFamily(value, '10320/LOC'));
