// Parses the values that control redirects: 10320/loc, 10320/links and 10320/headers.
import { LRUCache } from 'lru-cache';
import { MAX_HANDLE_BYTES } from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import type { Steps } from '../../time-slicer.js';
import { isFamily, textOf } from '../../redirect/values.js';
import { type AddressRanges, countRanges, readRanges } from './addresses.js';
import { MAX_LIST_CHARS, scanDocument } from './scan.js';

export type Attributes = ReadonlyMap<string, string>;

/** A location, with its numbers and address ranges parsed once for all selections. */
export interface Location {
  attributes: Attributes;
  /** At least 0. NaN and Infinity are valid, as in HDLProxy. */
  weight: number;
  score: number;
  /** Country code in lower case. */
  country?: string | undefined;
  addresses?: AddressRanges | undefined;
}

/** A reference to the lists of a different handle, or of a prefix. */
export interface Include {
  kind: 'handle' | 'namespace';
  handle: string;
}

export interface LocationList extends LocationIndex {
  /** The attributes of the root element. */
  settings: Attributes;
  locations: readonly Location[];
  /** In HDLProxy's order: attributes, then elements. */
  includes: readonly Include[];
}

interface LocationIndex {
  /** All values of each attribute across the locations. */
  texts: ReadonlyMap<string, ReadonlySet<string>>;
  /** The first location with a `rel` for each `id`, to resolve `anchor-id`. */
  anchors: ReadonlyMap<string, Attributes>;
}

/** Maximum address ranges per list. HDLProxy has no limit; a large university has some hundred networks. */
const MAX_RANGES = 10_000;

/**
 * Returns undefined for an invalid list or one over the limits. The root element may have any name (recording
 * "loc xml: root of another name").
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
    // A missing or invalid weight counts as 1.
    weight: Math.max(0, readDouble(attributes.get('weight')) ?? 1),
    score: Number.isNaN(score) ? 0 : score,
    country: attributes.get('country')?.trim().toLowerCase(),
    addresses: addresses === undefined ? undefined : yield* readRanges(addresses),
  };
}

function* indexLocations(locations: readonly Location[]): Steps<LocationIndex> {
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

/**
 * Accepts `yes`, `true` and `1` in any letter case; all other text means no (recording "legacy: showurls with
 * no_legacy="x"").
 */
export const isYes = (text = ''): boolean => text.length <= 4 && YES.includes(text.toLowerCase());

export type ParseLocationList = typeof parseLocationList;

const MAX_CACHED_BYTES = 64 * 1024 * 1024;
/** Estimated heap overhead of a location and of a range, excluding their text. */
const LOCATION_BYTES = 1000;
const RANGE_BYTES = 100;

/** Wraps `parseLocationList` in an LRU cache, because most requests also parse the lists of their prefix. */
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
  /** Lists from the 10320/loc values, in record order. */
  lists: readonly LocationList[];
  /** Lists from the 10320/links values. */
  links: readonly LocationList[];
  /** The texts of the 10320/headers values. */
  headers: readonly string[];
}

/**
 * Maximum elements across all lists of a redirect. HDLProxy has no limit: 200 includes of a large list yield
 * millions.
 */
export const MAX_ELEMENTS = 20_000;
/** Fixed cost of a list, in addition to one element per location. */
const ELEMENTS_PER_LIST = 20;
/** Number of header characters that cost one element. */
const CHARS_PER_ELEMENT = 50;

/**
 * Skips broken values and stops at `MAX_ELEMENTS`. HDLProxy responds with 500 to a broken value in the record
 * itself.
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

/** Returns the number of elements to count towards `MAX_ELEMENTS`. */
export const countElements = ({ lists, links, headers }: HandleLists): number =>
  [...lists.map(elementsOf), ...links.map(elementsOf), ...headers.map(elementsOfLines)].reduce(
    (sum, elements) => sum + elements,
    0,
  );

/**
 * Whether any value is a URL or 10320/loc (recordings "links: 10320/links alone", "legacy: 0.TYPE/URL
 * alone").
 */
export const mayRedirect = (values: readonly HandleValue[]): boolean =>
  values.some((value) => isFamily(value, 'URL') || isFamily(value, '10320/LOC'));

/** Maximum length of a number. A double has at most 17 significant digits; longer texts are invalid. */
const MAX_CHARS = 32;

const DECIMAL = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)[fd]?$/i;

/** Parses a decimal number as Java's Double does; returns undefined for invalid input. */
export function readDouble(text = ''): number | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_CHARS) return undefined;
  if (/^[+-]?(?:NaN|Infinity)$/.test(trimmed)) return Number(trimmed);
  const decimal = DECIMAL.exec(trimmed)?.[1];
  return decimal === undefined ? undefined : Number(decimal);
}

/** Formats integers with a decimal point, `1` as `1.0` (recordings "legacy: …showurls"). */
export const writeDouble = (value: number): string =>
  Number.isInteger(value) ? value.toFixed(1) : String(value);
