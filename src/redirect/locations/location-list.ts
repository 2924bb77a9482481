// The values of one handle that take part in redirects: 10320/loc, 10320/links and 10320/headers, parsed.
import { LRUCache } from 'lru-cache';
import { MAX_HANDLE_BYTES } from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import type { Steps } from '../../time-slicer.js';
import { isFamily, textOf } from '../values.js';
import { type AddressRanges, countRanges, readRanges } from './addresses.js';
import { MAX_LIST_CHARS, scanDocument } from './scan.js';

export type Attributes = ReadonlyMap<string, string>;

/** A location, with the numbers and ranges that the selection compares parsed once. */
export interface Location {
  attributes: Attributes;
  /** 0 or more; NaN and Infinity as HDLProxy reads them. */
  weight: number;
  score: number;
  /** Country code in lower case. */
  country?: string | undefined;
  addresses?: AddressRanges | undefined;
}

/** Another handle whose lists take part, or the lists of a prefix. */
export interface Include {
  kind: 'handle' | 'namespace';
  handle: string;
}

export interface LocationList {
  /** The attributes of the root element. */
  settings: Attributes;
  locations: readonly Location[];
  /** In the order in which HDLProxy follows them: attributes, then elements. */
  includes: readonly Include[];
  /** All texts of each attribute among the locations. */
  texts: ReadonlyMap<string, ReadonlySet<string>>;
  /** For `anchor-id`: the first location of each `id` that has a `rel`. */
  anchors: ReadonlyMap<string, Attributes>;
}

/** Maximum address ranges of one list. HDLProxy has no limit; a list of all networks of a large university has some hundreds. */
const MAX_RANGES = 10_000;

/**
 * Undefined when the text is not a list or exceeds the bounds. The root may have any name (recording "loc xml: root of
 * another name").
 */
export function* parseLocationList(text: string): Steps<LocationList | undefined> {
  const scanned = yield* scanDocument(text);
  if (scanned === undefined) return undefined;
  const { root, children } = scanned;
  const found = children.filter(({ name }) => name === 'location' || name === 'loc_template');
  const ranges = found.reduce(
    (sum, { attributes }) => sum + countRanges(attributes.get('addresses') ?? ''),
    0,
  );
  if (ranges > MAX_RANGES) return undefined;
  const locations: Location[] = [];
  for (const { attributes } of found) {
    locations.push(yield* readLocation(attributes));
    yield;
  }
  const index = yield* indexLocations(locations);
  const settings = root.attributes;
  const includes = [
    includeOf('handle', settings.get('include')),
    includeOf('namespace', settings.get('includeNamespace')),
    ...children.map(({ name, text: handle }) => {
      if (name === 'include') return includeOf('handle', handle);
      return name === 'includenamespace' ? includeOf('namespace', handle) : undefined;
    }),
  ].filter((include) => include !== undefined);
  return { settings, locations, includes, ...index };
}

function* readLocation(attributes: Attributes): Steps<Location> {
  const addresses = attributes.get('addresses');
  const score = readDouble(attributes.get('score')) ?? 0;
  return {
    attributes,
    // 1 when missing or unreadable.
    weight: Math.max(0, readDouble(attributes.get('weight')) ?? 1),
    score: Number.isNaN(score) ? 0 : score,
    country: attributes.get('country')?.trim().toLowerCase(),
    addresses: addresses === undefined ? undefined : yield* readRanges(addresses),
  };
}

function* indexLocations(locations: readonly Location[]): Steps<Pick<LocationList, 'texts' | 'anchors'>> {
  const texts = new Map<string, Set<string>>();
  const anchors = new Map<string, Attributes>();
  for (const { attributes } of locations) {
    for (const [name, text] of attributes) {
      const known = texts.get(name);
      if (known === undefined) texts.set(name, new Set([text]));
      else known.add(text);
    }
    const id = attributes.get('id');
    if (id !== undefined && attributes.has('rel') && !anchors.has(id)) anchors.set(id, attributes);
    yield;
  }
  return { texts, anchors };
}

function includeOf(kind: Include['kind'], text: string | undefined): Include | undefined {
  const handle = text?.trim() ?? '';
  return handle === '' || handle.length > MAX_HANDLE_BYTES ? undefined : { kind, handle };
}

const YES: readonly string[] = ['yes', 'true', '1'];

/** `yes`, `true` and `1` in any case; other texts mean no (recording "legacy: showurls with no_legacy="x""). */
export const isYes = (text = ''): boolean => text.length <= 4 && YES.includes(text.toLowerCase());

export type ParseLocationList = typeof parseLocationList;

const MAX_CACHED_BYTES = 64 * 1024 * 1024;
/** Estimated memory of a location and of a range, in addition to their text. */
const LOCATION_BYTES = 1000;
const RANGE_BYTES = 100;

/** `parseLocationList` with a cache: each request needs a list with weights, and most requests those of their prefix. */
export function createLocationListParser(): ParseLocationList {
  const cached = new LRUCache<string, { list: LocationList | undefined }>({
    maxSize: MAX_CACHED_BYTES,
    sizeCalculation: ({ list }, text) => 1 + text.length + sizeOf(list),
  });
  return function* parse(text) {
    if (text.length > MAX_LIST_CHARS) return undefined;
    const known = cached.get(text);
    if (known !== undefined) return known.list;
    const list = yield* parseLocationList(text);
    cached.set(text, { list });
    return list;
  };
}

const sizeOf = (list: LocationList | undefined): number =>
  (list?.locations ?? []).reduce(
    (sum, { addresses = [] }) => sum + LOCATION_BYTES + RANGE_BYTES * addresses.length,
    0,
  );

export interface HandleLists {
  /** Lists of the 10320/loc values, in the order of the record. */
  lists: readonly LocationList[];
  /** Lists of the 10320/links values. */
  links: readonly LocationList[];
  /** The texts of the 10320/headers values. */
  headers: readonly string[];
}

/** Maximum for all lists of a redirect. HDLProxy has no limit: two hundred includes of one large list are millions of locations. */
export const MAX_ELEMENTS = 20_000;
/** A list counts as this many elements in addition to its locations; this many characters of header lines count as one. */
const ELEMENTS_PER_LIST = 20;
const CHARS_PER_ELEMENT = 50;

/**
 * Leaves out broken values, to which HDLProxy responds with 500 in the record itself, and values from the first one beyond
 * `MAX_ELEMENTS` on.
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

/** Number of elements, of which `MAX_ELEMENTS` is the maximum. */
export const countElements = ({ lists, links, headers }: HandleLists): number =>
  [...lists.map(elementsOf), ...links.map(elementsOf), ...headers.map(elementsOfLines)].reduce(
    (sum, elements) => sum + elements,
    0,
  );

/** Only records with a URL or a location are redirected (recordings "links: 10320/links alone", "legacy: 0.TYPE/URL alone"). */
export const mayRedirect = (values: readonly HandleValue[]): boolean =>
  values.some((value) => isFamily(value, 'URL') || isFamily(value, '10320/LOC'));

/** A double has at most 17 significant digits; longer texts are not parsed. */
const MAX_CHARS = 32;

const DECIMAL = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)[fd]?$/i;

/** Reads decimal numbers as Java's Double does; undefined for other texts. */
export function readDouble(text = ''): number | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_CHARS) return undefined;
  if (/^[+-]?(?:NaN|Infinity)$/.test(trimmed)) return Number(trimmed);
  const decimal = DECIMAL.exec(trimmed)?.[1];
  return decimal === undefined ? undefined : Number(decimal);
}

/** Writes `1` as `1.0` (recordings "legacy: …showurls"). */
export const writeDouble = (value: number): string =>
  Number.isInteger(value) ? value.toFixed(1) : String(value);
