// The values of one handle that take part in redirects: 10320/loc, 10320/links and 10320/headers.
import type { HandleValue } from '../../handle/value.js';
import type { Steps } from '../../time-slicer.js';
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

/** HDLProxy has no limit: two hundred includes of one large list are millions of locations for each request. */
export const MAX_ELEMENTS = 20_000;
/** A list counts as this many elements beside its locations, and this many characters of header lines as one. */
const ELEMENTS_PER_LIST = 20;
const CHARS_PER_ELEMENT = 50;

/**
 * A broken value is left out; HDLProxy responds with 500 when it is the record's own. So is the first value beyond
 * `MAX_ELEMENTS`, with those behind it.
 */
export function* listsIn(values: readonly HandleValue[], parse: ParseLocationList): Steps<HandleLists> {
  let left = MAX_ELEMENTS;
  const textsOf = (type: string): string[] =>
    values.filter((value) => isFamily(value, type)).map((value) => textOf(value) ?? '');
  function* read(type: string): Steps<LocationList[]> {
    const lists: LocationList[] = [];
    for (const text of textsOf(type)) {
      const list = yield* parse(text);
      yield;
      left -= list === undefined ? ELEMENTS_PER_LIST : elementsOf(list);
      if (left < 0) break;
      if (list !== undefined) lists.push(list);
    }
    return lists;
  }
  return {
    lists: yield* read('10320/LOC'),
    links: yield* read('10320/LINKS'),
    headers: textsOf('10320/HEADERS').filter((text) => (left -= elementsOfLines(text)) >= 0),
  };
}

const elementsOf = ({ locations }: LocationList): number => ELEMENTS_PER_LIST + locations.length;
const elementsOfLines = (text: string): number => 1 + text.length / CHARS_PER_ELEMENT;

/** What `MAX_ELEMENTS` counts. */
export const countElements = ({ lists, links, headers }: HandleLists): number =>
  [...lists.map(elementsOf), ...links.map(elementsOf), ...headers.map(elementsOfLines)].reduce(
    (sum, elements) => sum + elements,
    0,
  );

/** Only records with a URL or a location are redirected (recordings "links: 10320/links alone", "legacy: 0.TYPE/URL alone"). */
export const mayRedirect = (values: readonly HandleValue[]): boolean =>
  values.some((value) => isFamily(value, 'URL') || isFamily(value, '10320/LOC'));
