// Handle server JSON: parsed within bounds, written like Gson without HTML escaping, sliced, and indented; the
// bounds of JSON that clients send.
import type { Steps } from '../time-slicer.js';

/**
 * Maximum nesting depth. An HS_SITE value, the deepest Handle JSON, is nested nine levels deep (recording
 * "create: every type"). `JSON.stringify` recurses, and indented JSON grows with each level.
 */
const MAX_DEPTH = 64;

/**
 * Maximum number of objects, of arrays, and of numbers and literals in arrays together. A record of 2 MiB with the
 * shortest possible values has 61,000; a native message has at most 32,000. Parsing a text of nothing else takes
 * up to ten times as long as parsing a record of the same length.
 */
const MAX_ELEMENTS = 64 * 1024;

/** Thrown for JSON that no Handle server stores, because parsing or rendering it would be too expensive. */
export class JsonLimitError extends Error {}

/** Parses untrusted JSON. @throws JsonLimitError, or SyntaxError for invalid JSON */
export function parseJson(json: string): unknown {
  // An element has at least two characters, with its separator.
  if (json.length > 2 * MAX_ELEMENTS || hasManyBrackets(json)) assertWithinLimits(json);
  return JSON.parse(json);
}

/** A fast pre-check: most records have fewer brackets than the maximum depth. */
const hasManyBrackets = (json: string): boolean =>
  json.length > MAX_DEPTH && countContainers(json, MAX_DEPTH + 1) > MAX_DEPTH;

/** Counts the objects and arrays, up to `most` of each; also counts brackets in strings. */
export const countContainers = (json: string, most = Infinity): number =>
  countUpTo(most, json, '{') + countUpTo(most, json, '[');

/** Extracts the JSON object from a response, including JSONP; returns an empty string without an object. */
export const extractObject = (text: string): string =>
  text.includes('{') ? text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1) : '';

/** Escapes U+2028 and U+2029 like Gson; JSON.stringify leaves them bare. */
const asGson = (json: string): string => json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');

/** Writes a value on one line, byte for byte like a Handle server. */
export function writeJson(value: unknown): string {
  return asGson(JSON.stringify(value));
}

/** Yields the elements of a valid JSON array as written. */
export function* stepElements(json: string): Generator<string, void, void> {
  let at = skipSpace(json, json.indexOf('[') + 1);
  while (at < json.length && json[at] !== ']') {
    const end = endOfValue(json, at);
    yield json.slice(at, end);
    at = skipSeparator(json, end);
  }
}

/** Returns a member of a JSON object as written; the last for a repeated name. */
export function sliceMember(json: string, name: string): string | undefined {
  let found: string | undefined;
  let at = skipSpace(json, json.indexOf('{') + 1);
  while (at < json.length && json[at] !== '}') {
    const nameEnd = endOfString(json, at);
    const start = skipSpace(json, json.indexOf(':', nameEnd) + 1);
    const end = endOfValue(json, start);
    if (isName(json.slice(at, nameEnd), name)) found = json.slice(start, end);
    at = skipSeparator(json, end);
  }
  return found;
}

const isName = (written: string, name: string): boolean =>
  written.includes('\\') ? JSON.parse(written) === name : written === `"${name}"`;

function endOfValue(json: string, start: number): number {
  if (json[start] === '"') return endOfString(json, start);
  if (json[start] === '{' || json[start] === '[') return endOfNested(json, start);
  let at = start;
  while (at < json.length && !',]} \n\r\t'.includes(json[at] ?? '')) at++;
  return at;
}

// Character codes of JSON syntax, because comparing characters as texts takes forty times as long.
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

function endOfNested(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at) - 1;
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) depth++;
    else if ((code === CLOSE_BRACKET || code === CLOSE_BRACE) && --depth === 0) return at + 1;
  }
  return json.length;
}

function countUpTo(most: number, json: string, bracket: '{' | '['): number {
  let count = 0;
  for (let at = json.indexOf(bracket); at !== -1 && count < most; at = json.indexOf(bracket, at + 1)) count++;
  return count;
}

/** @throws JsonLimitError */
function assertWithinLimits(json: string): void {
  let depth = 0;
  let elements = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at) - 1;
    else if (code === COMMA) elements += isBareAfter(json, at) ? 1 : 0;
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--;
    else if (isOpening(code)) {
      elements++;
      depth++;
      if (depth > MAX_DEPTH) throw new JsonLimitError(`JSON nested deeper than ${MAX_DEPTH} levels`);
    }
    if (elements > MAX_ELEMENTS) throw new JsonLimitError(`JSON with more than ${MAX_ELEMENTS} elements`);
  }
}

const isOpening = (code: number): boolean => code === OPEN_BRACKET || code === OPEN_BRACE;

/** Whether a number or literal follows the comma. In objects, a name follows. */
const isBareAfter = (json: string, comma: number): boolean =>
  !'"{['.includes(json[skipSpace(json, comma + 1)] ?? '"');

/** Finds the end of a string with `indexOf` for speed, because strings are most of a record. */
function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1 && json.charCodeAt(end - 1) === BACKSLASH && isEscaped(json, end)) {
    end = json.indexOf('"', end + 1);
  }
  return end === -1 ? json.length + 1 : end + 1;
}

/** Whether an odd number of backslashes precedes `at`. The opening quote bounds the search. */
function isEscaped(json: string, at: number): boolean {
  let before = at - 1;
  while (json.charCodeAt(before) === BACKSLASH) before--;
  return (at - before) % 2 === 0;
}

function skipSpace(json: string, start: number): number {
  let at = start;
  while (at < json.length && ' \n\r\t'.includes(json[at] ?? '')) at++;
  return at;
}

function skipSeparator(json: string, start: number): number {
  const at = skipSpace(json, start);
  return json[at] === ',' ? skipSpace(json, at + 1) : at;
}

/**
 * Maximum length of indented JSON, as a multiple of its length without indentation. Recorded Handle JSON grows
 * by 1.85 at most (recording "create: every type"); a list at a depth of 60 levels would grow by 60.
 */
const MAX_GROWTH = 4;

/** Bytes to lay out in one step, which takes a few microseconds. */
const STEP_BYTES = 1024;

const [OTHER, SPACE, STRING, OPENING, CLOSING, SEPARATOR, COLON] = [0, 1, 2, 3, 4, 5, 6];

/** Kinds of bytes outside strings. */
const KINDS = new Uint8Array(256).fill(OTHER);
for (const [kind, characters] of [
  [SPACE, ' \t\r\n'],
  [STRING, '"'],
  [OPENING, '{['],
  [CLOSING, '}]'],
  [SEPARATOR, ','],
  [COLON, ':'],
] as const) {
  for (const byte of Buffer.from(characters)) KINDS[byte] = kind;
}

const LINE_FEED = 0x0a;

/**
 * Returns indented JSON with the same tokens, or `json` itself if the indented JSON would be too long. `depth` is
 * the level of the first line.
 */
export function* indentJson(json: string, depth = 0): Steps<string> {
  const bytes = Buffer.from(json, 'utf8');
  const length = yield* indentedLength(bytes, depth);
  if (length > MAX_GROWTH * bytes.length) return json;
  // Filled with spaces, so that the layout only has to skip those that it inserts.
  const indented = Buffer.alloc(length, ' ');
  yield* new Layout(bytes, indented, depth).run();
  return indented.toString('utf8');
}

/** JavaScript ignores writes beyond the end of a typed array. */
const NOWHERE = new Uint8Array(0);

/** Returns the length of indented JSON (bytes) without rendering it. */
export function* indentedLength(json: Buffer, depth = 0): Steps<number> {
  return yield* new Layout(json, NOWHERE, depth).run();
}

/** A single pass over JSON, which is laid out in `output`. */
class Layout {
  readonly #json: Uint8Array;
  readonly #output: Uint8Array;
  #depth: number;
  #at = 0;
  #length = 0;
  #isInString = false;
  /** Whether the last byte was an opening bracket. Its line break depends on the next byte. */
  #isOpen = false;

  constructor(json: Uint8Array, output: Uint8Array, depth: number) {
    this.#json = json;
    this.#output = output;
    this.#depth = depth;
  }

  /** Returns the length of the output. */
  *run(): Steps<number> {
    const { length } = this.#json;
    for (let end = STEP_BYTES; end < length; end += STEP_BYTES) {
      this.#layOutUntil(end);
      yield;
    }
    this.#layOutUntil(length);
    return this.#length;
  }

  #layOutUntil(end: number): void {
    while (this.#at < end) {
      if (this.#isInString) this.#copyString(end);
      else this.#place(this.#json[this.#at++] as number);
    }
  }

  /** Copies the rest of a string, up to `end`, or one byte further. */
  #copyString(end: number): void {
    const json = this.#json;
    const output = this.#output;
    let at = this.#at;
    let length = this.#length;
    while (at < end) {
      const byte = json[at++] as number;
      output[length++] = byte;
      if (byte === QUOTE) {
        this.#isInString = false;
        break;
      }
      if (byte === BACKSLASH) output[length++] = json[at++] as number;
    }
    this.#at = at;
    this.#length = length;
  }

  #place(byte: number): void {
    const kind = KINDS[byte];
    if (kind === SPACE) return;
    if (kind === CLOSING) this.#depth--;
    if (kind === CLOSING ? !this.#isOpen : this.#isOpen) this.#breakLine();
    this.#output[this.#length++] = byte;
    this.#isOpen = kind === OPENING;
    if (kind === OTHER) return;
    if (kind === OPENING) this.#depth++;
    else if (kind === SEPARATOR) this.#breakLine();
    else if (kind === COLON) this.#length++;
    else if (kind === STRING) this.#isInString = true;
  }

  #breakLine(): void {
    this.#output[this.#length] = LINE_FEED;
    // Invalid JSON may close more brackets than it opens.
    this.#length += 1 + 2 * Math.max(0, this.#depth);
  }
}

/** The limits of an interface for the JSON that it receives. */
export interface JsonLimits {
  /** Maximum elements of a list. */
  elements: number;
  /** Maximum commas and opening brackets, of which each has one value. */
  values: number;
}

/** Maximum members of an object; the objects of the interfaces have up to fourteen. */
const MAX_MEMBERS = 64;
/** Maximum nesting depth; bodies of the interfaces have up to four levels. */
const MAX_LEVELS = 32;

/** The limit that a text exceeds. */
interface Excess {
  kind: 'elements' | 'members' | 'levels' | 'values';
  max: number;
}

interface Container {
  kind: 'elements' | 'members';
  max: number;
  /** Elements or members so far. */
  size: number;
}

/**
 * Returns the first limit that JSON exceeds. It reads no further: a megabyte of `{},` takes 60 ms to parse, and
 * seconds to validate. The text may be invalid JSON.
 */
export function findExcess(json: string, limits: JsonLimits): Excess | undefined {
  const open: Container[] = [];
  let values = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at) - 1;
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) open.pop();
    else if (code === COMMA || isOpening(code)) {
      const excess = countValue(open, code, limits);
      if (excess !== undefined) return excess;
      if (++values > limits.values) return { kind: 'values', max: limits.values };
    }
  }
  return undefined;
}

/** Counts the value after a comma, or the first of a new list or object. */
function countValue(open: Container[], code: number, { elements }: JsonLimits): Excess | undefined {
  if (code === COMMA) {
    const container = open.at(-1);
    if (container === undefined || ++container.size <= container.max) return undefined;
    return { kind: container.kind, max: container.max };
  }
  if (open.length === MAX_LEVELS) return { kind: 'levels', max: MAX_LEVELS };
  open.push(
    code === OPEN_BRACKET
      ? { kind: 'elements', max: elements, size: 1 }
      : { kind: 'members', max: MAX_MEMBERS, size: 1 },
  );
  return undefined;
}

const WORDS: Readonly<Record<Excess['kind'], (max: number) => string>> = {
  elements: (max) => `a list has more than ${max} elements`,
  members: (max) => `an object has more than ${max} members`,
  levels: (max) => `it is nested deeper than ${max} levels`,
  values: (max) => `it has more than ${max} values`,
};

export const describeExcess = ({ kind, max }: Excess): string => WORDS[kind](max);
