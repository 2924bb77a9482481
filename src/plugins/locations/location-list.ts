// Parses the values that control redirects: 10320/loc, 10320/links and 10320/headers.
import { LRUCache } from 'lru-cache';
import { MAX_HANDLE_BYTES } from '../../handle/handle.js';
import { type Steps, mapInSteps } from '../../time-slicer.js';
import { type AddressRanges, readRanges } from './addresses.js';

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

export interface LocationList {
  settings: Attributes;
  locations: readonly Location[];
  /** In HDLProxy's order: attributes, then elements. */
  includes: readonly Include[];
  /** Number of locations, of which each counts as many times as it has address ranges. */
  elements: number;
  /** All values of each attribute across the locations. */
  texts: ReadonlyMap<string, ReadonlySet<string>>;
  /** The first location with a `rel` for each `id`, to resolve `anchor-id`. */
  anchors: ReadonlyMap<string, Attributes>;
}

/** Maximum address ranges per list. HDLProxy has no limit; a large university has some hundred networks. */
const MAX_RANGES = 10_000;

/** Returns undefined for an invalid list; any root is valid (recording "loc xml: root LOCATIONS"). */
export function* parseLocationList(text: string): Steps<LocationList | undefined> {
  const scanned = yield* scanDocument(text);
  if (scanned === undefined) return undefined;
  const { root, children } = scanned;
  const found = children.filter(({ name }) => name === 'location' || name === 'loc_template');
  const elements = sumOf(found.map(({ attributes }) => countRanges(attributes.get('addresses') ?? '')));
  if (elements > MAX_RANGES) return undefined;
  const locations: Location[] = [];
  const texts = new Map<string, Set<string>>();
  const anchors = new Map<string, Attributes>();
  for (const { attributes } of found) {
    const addresses = attributes.get('addresses');
    const ranges = addresses === undefined ? undefined : yield* readRanges(addresses);
    locations.push(readLocation(attributes, ranges));
    for (const [name, value] of attributes) texts.set(name, (texts.get(name) ?? new Set()).add(value));
    const id = attributes.get('id');
    if (id !== undefined && attributes.has('rel') && !anchors.has(id)) anchors.set(id, attributes);
    yield;
  }
  return { settings: root.attributes, locations, includes: readIncludes(scanned), elements, texts, anchors };
}

const countRanges = (addresses: string): number => addresses.split(',', MAX_RANGES + 1).length;

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

function readLocation(attributes: Attributes, addresses: AddressRanges | undefined): Location {
  const score = readDouble(attributes.get('score')) ?? 0;
  return {
    attributes,
    // A missing or invalid weight counts as 1.
    weight: Math.max(0, readDouble(attributes.get('weight')) ?? 1),
    score: Number.isNaN(score) ? 0 : score,
    country: attributes.get('country')?.trim().toLowerCase(),
    addresses,
  };
}

const readIncludes = ({ root, children }: ScannedDocument): Include[] =>
  [
    includeOf('handle', root.attributes.get('include')),
    includeOf('namespace', root.attributes.get('includeNamespace')),
    ...children.map(({ name, text }) => {
      if (name === 'include') return includeOf('handle', text);
      return name === 'includenamespace' ? includeOf('namespace', text) : undefined;
    }),
  ].filter((include) => include !== undefined);

function includeOf(kind: Include['kind'], text: string | undefined): Include | undefined {
  const handle = text?.trim() ?? '';
  return handle === '' || handle.length > MAX_HANDLE_BYTES ? undefined : { kind, handle };
}

const YES: readonly string[] = ['yes', 'true', '1'];

/** Any other text means no (recording "legacy: showurls with no_legacy="x""). */
export const isYes = (text = ''): boolean => text.length <= 4 && YES.includes(text.toLowerCase());

export type ParseLocationList = typeof parseLocationList;

const MAX_CACHED_BYTES = 64 * 1024 * 1024;
/** Heap use (bytes), measured. A name is that of an attribute, whose set of values has a place in `texts`. */
const HEAP = { list: 300, location: 300, attribute: 100, name: 150, range: 160, include: 80 };
/** Bytes per character: two for the text, and two for what is decoded from it. */
const CHAR_BYTES = 4;

/** Wraps `parseLocationList` in an LRU cache, because most requests also parse the lists of their prefix. */
export function createLocationListParser(): ParseLocationList {
  const cached = new LRUCache<string, { list: LocationList | undefined }>({
    maxSize: MAX_CACHED_BYTES,
    sizeCalculation: ({ list }, text) => HEAP.list + CHAR_BYTES * text.length + sizeOf(list),
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

function sizeOf(list: LocationList | undefined): number {
  if (list === undefined) return 0;
  const { settings, locations, includes, texts } = list;
  const sizes = locations.map(
    ({ attributes, addresses = [] }) =>
      HEAP.location + HEAP.attribute * attributes.size + HEAP.range * addresses.length,
  );
  return (
    sumOf(sizes) + HEAP.attribute * settings.size + HEAP.name * texts.size + HEAP.include * includes.length
  );
}

/** The value types that control redirects, in upper case. */
export const TYPES = ['10320/LOC', '10320/LINKS', '10320/HEADERS'] as const;

export interface HandleLists {
  /** Lists from the 10320/loc values, in record order. */
  lists: readonly LocationList[];
  links: readonly LocationList[];
  headers: readonly string[];
}

/** Maximum elements of all lists of a redirect; in HDLProxy, 200 includes of a large list yield millions. */
export const MAX_ELEMENTS = 20_000;
/** Fixed cost of a list, in addition to its elements. */
const ELEMENTS_PER_LIST = 20;
/** Number of header characters that cost one element. */
const CHARS_PER_ELEMENT = 50;

/** Skips broken values; in a record itself, HDLProxy responds with 500. The texts are by type of `TYPES`. */
export function* listsIn(
  [locations = [], links = [], headers = []]: readonly string[][],
  parse: ParseLocationList,
): Steps<HandleLists> {
  let left = MAX_ELEMENTS;
  function* read(texts: readonly string[]): Steps<LocationList[]> {
    const lists: LocationList[] = [];
    for (const text of texts) {
      const list = yield* parse(text);
      yield;
      left -= list === undefined ? ELEMENTS_PER_LIST : elementsOf(list);
      if (left < 0) break;
      if (list !== undefined) lists.push(list);
    }
    return lists;
  }
  return {
    lists: yield* read(locations),
    links: yield* read(links),
    headers: headers.filter((text) => (left -= elementsOfLines(text)) >= 0),
  };
}

const elementsOf = ({ elements }: LocationList): number => ELEMENTS_PER_LIST + elements;
const elementsOfLines = (text: string): number => 1 + text.length / CHARS_PER_ELEMENT;

export const countElements = ({ lists, links, headers }: HandleLists): number =>
  sumOf([...lists.map(elementsOf), ...links.map(elementsOf), ...headers.map(elementsOfLines)]);

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

// Scans a list as leniently as HDLProxy, which accepts malformed XML, but without document types.

interface ScannedElement {
  /** In lower case, because HDLProxy matches element names case-insensitively. */
  name: string;
  /** Attribute names are case-sensitive. */
  attributes: Map<string, string>;
  /** Text directly inside the element. */
  text: string;
}

interface ScannedDocument {
  root: ScannedElement;
  /** The root's children, without deeper descendants (recording "loc xml: nested one deeper"). */
  children: ScannedElement[];
}

/** Maximum list length. Lists in the DOI system and in HDLProxy's documentation have a few kilobytes. */
const MAX_LIST_CHARS = 1024 * 1024;
const MAX_CHILDREN = 10_000;
/** Maximum attributes per element. HDLProxy defines about 20. */
const MAX_ATTRIBUTES = 100;

const CHARS_PER_STEP = 4 * 1024;

/** Returns the first element with its children; undefined for a text that is rejected. */
export function* scanDocument(text: string): Steps<ScannedDocument | undefined> {
  if (text.length > MAX_LIST_CHARS) return undefined;
  const tree = new OpenTree();
  let steppedAt = 0;
  for (let at = 0, open = text.indexOf('<'); open !== -1; open = text.indexOf('<', at)) {
    const { child } = tree;
    if (child !== undefined) child.text += yield* decodeEntities(text.slice(at, open));
    const tag = readTag(text, open);
    if (tag?.kind === 'start') yield* decodeAttributes(tag.attributes);
    if (tag === undefined || !tree.add(tag)) return undefined;
    if (tree.isComplete) break;
    at = tag.end;
    if (at - steppedAt < CHARS_PER_STEP) continue;
    steppedAt = at;
    yield;
  }
  return tree.document;
}

/** Scan state. Elements may stay open, and any end tag closes the innermost element. */
class OpenTree {
  document: ScannedDocument | undefined;
  #depth = 0;

  /** True once the first root has closed; further roots are ignored (recording "loc xml: two roots"). */
  get isComplete(): boolean {
    return this.#depth === 0 && this.document !== undefined;
  }

  /** The child of the root that is open; undefined within other elements. */
  get child(): ScannedElement | undefined {
    return this.#depth === 2 ? this.document?.children.at(-1) : undefined;
  }

  add(tag: Tag): boolean {
    if (tag.kind === 'start') return this.#open(tag);
    if (tag.kind === 'end') this.#depth = Math.max(0, this.#depth - 1);
    return tag.kind !== 'document type' || this.#depth > 0;
  }

  #open({ name, attributes, isEmpty }: StartTag): boolean {
    const element = { name, attributes, text: '' };
    this.document ??= { root: element, children: [] };
    const { children } = this.document;
    if (this.#depth === 1) children.push(element);
    if (!isEmpty) this.#depth += 1;
    return children.length <= MAX_CHILDREN;
  }
}

function* decodeAttributes(attributes: Map<string, string>): Steps<void> {
  for (const [name, text] of attributes) attributes.set(name, yield* decodeEntities(text));
}

interface StartTag {
  kind: 'start';
  name: string;
  /** With entities as written. */
  attributes: Map<string, string>;
  end: number;
  isEmpty: boolean;
}

type Tag = StartTag | { kind: 'end' | 'document type' | 'other'; end: number };

function readTag(text: string, open: number): Tag | undefined {
  if (text.startsWith('<!--', open)) return tagUntil('other', text, { from: open + 4, mark: '-->' });
  if (text.startsWith('<![CDATA[', open)) return tagUntil('other', text, { from: open, mark: ']]>' });
  if (text.startsWith('</', open)) return tagUntil('end', text, { from: open, mark: '>' });
  if (text.startsWith('<!', open)) return tagUntil('document type', text, { from: open, mark: '>' });
  // Unlike HDLProxy, skips an XML declaration instead of reading it as an empty root.
  if (text.startsWith('<?', open)) return tagUntil('other', text, { from: open, mark: '>' });
  return readStartTag(text, open);
}

function tagUntil(
  kind: 'end' | 'document type' | 'other',
  text: string,
  { from, mark }: { from: number; mark: string },
): Tag | undefined {
  const at = text.indexOf(mark, from);
  return at === -1 ? undefined : { kind, end: at + mark.length };
}

const SPACE = /\s*/y;
const NAME = /[^\s=>"'/]*/y;
/** White space, and the quotes, slashes and equals signs that belong to no attribute. */
const BETWEEN = /[\s="'/]*/y;
const BARE_VALUE = /[^\s>]*/y;

function endOfMatch(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return at + (pattern.exec(text)?.[0].length ?? 0);
}

/** The last duplicate wins; an attribute without a value is `NULL` (recording "link: every attribute"). */
function readStartTag(text: string, open: number): StartTag | undefined {
  const nameAt = endOfMatch(SPACE, text, open + 1);
  const end = endOfMatch(NAME, text, nameAt);
  const name = text.slice(nameAt, end).toLowerCase();
  const attributes = new Map<string, string>();
  let at = endOfMatch(BETWEEN, text, end);
  while (at < text.length && attributes.size <= MAX_ATTRIBUTES) {
    if (text[at] === '>')
      return { kind: 'start', name, attributes, end: at + 1, isEmpty: text[at - 1] === '/' };
    const nameEnd = endOfMatch(NAME, text, at);
    const equals = endOfMatch(SPACE, text, nameEnd);
    const value =
      text[equals] === '='
        ? readValue(text, endOfMatch(SPACE, text, equals + 1))
        : { text: 'NULL', end: nameEnd };
    if (value === undefined) return undefined;
    attributes.set(text.slice(at, nameEnd), value.text);
    at = endOfMatch(BETWEEN, text, value.end);
  }
  return undefined;
}

function readValue(text: string, at: number): { text: string; end: number } | undefined {
  const quote = text[at];
  if (quote !== '"' && quote !== "'") {
    const end = endOfMatch(BARE_VALUE, text, at);
    const value = text.slice(at, end);
    // The slash in `<location href=x/>` closes the element.
    return { text: text[end] === '>' ? value.replace(/\/$/, '') : value, end };
  }
  const end = text.indexOf(quote, at + 1);
  return end === -1 ? undefined : { text: text.slice(at + 1, end), end: end + 1 };
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Leaves a bare `&` unchanged (recording "loc xml: bare & in href"). */
function* decodeEntities(text: string): Steps<string> {
  return text.includes('&') ? yield* changeInPieces(text, decodePiece) : text;
}

const decodePiece = (text: string): string =>
  text.replace(
    /&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#[xX]([\dA-Fa-f]{1,6}));/g,
    (whole, name?: string, decimal?: string, hex?: string) => {
      if (name !== undefined) return NAMED[name] ?? whole;
      const code = decimal === undefined ? parseInt(hex ?? '', 16) : Number(decimal);
      return code > 0x10ffff ? whole : String.fromCodePoint(code);
    },
  );

const PIECE_CHARS = 8 * 1024;
/** Length of the longest entity, `&#x10ffff;`. */
const MAX_ENTITY_CHARS = 10;

/** Converts long text in pieces. No piece ends inside an entity or a surrogate pair. */
export function* changeInPieces(text: string, change: (piece: string) => string): Steps<string> {
  if (text.length <= PIECE_CHARS) return change(text);
  return (yield* mapInSteps(piecesOf(text), change)).join('');
}

function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = endOfPiece(text, at + PIECE_CHARS);
    pieces.push(text.slice(at, end));
  }
  return pieces;
}

function endOfPiece(text: string, end: number): number {
  if (end >= text.length) return text.length;
  const entity = text.slice(end - MAX_ENTITY_CHARS, end).lastIndexOf('&');
  if (entity !== -1) return end - MAX_ENTITY_CHARS + entity;
  return /[\udc00-\udfff]/.test(text.charAt(end)) ? end - 1 : end;
}
