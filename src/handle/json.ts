// Handle server JSON: parsed within limits, lower for clients, written like Gson without HTML escaping, sliced, indented.
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

/**
 * Maximum number of different sequences of names with which objects begin. V8 creates a hidden class for each, which
 * takes thirty times as long as parsing one more member of a known sequence.
 */
const MAX_SHAPES = 1024;

/** Maximum length of JSON that is not checked unless it has many brackets: parsing it takes less than 4 ms. */
const MAX_CHEAP_CHARS = 16 * 1024;

/** The limits of an interface for the JSON that it receives. */
export interface JsonLimits {
  /** Maximum elements of a list. */
  elements: number;
  /** Maximum commas and opening brackets, of which each has one value. */
  values: number;
}

/** Thrown for JSON that would be too expensive to parse, validate or render. No Handle server stores such JSON. */
export class JsonLimitError extends Error {
  /** Whether a list has more elements than `JsonLimits` allow. */
  isLongList = false;
}

/** Parses untrusted JSON. @throws JsonLimitError, or SyntaxError for invalid JSON */
export function parseJson(json: string): unknown {
  // Most records have fewer brackets than the maximum depth.
  const isCheap = json.length <= MAX_CHEAP_CHARS && countContainers(json, MAX_DEPTH + 1) <= MAX_DEPTH;
  return isCheap ? JSON.parse(json) : parseWithin(UNLIMITED, json);
}

/** Does the same, in two steps if it is long, because each takes up to 10 ms per MiB. */
export function* parseJsonInSteps(json: string): Steps<unknown> {
  if (json.length <= MAX_CHEAP_CHARS) return parseJson(json);
  new LimitScan(json, UNLIMITED).run();
  yield;
  return JSON.parse(json) as unknown;
}

const UNLIMITED: JsonLimits = { elements: Infinity, values: Infinity };

/** Parses JSON of any length within all limits. @throws JsonLimitError, or SyntaxError for invalid JSON */
export function parseWithin(limits: JsonLimits, json: string): unknown {
  new LimitScan(json, limits).run();
  return JSON.parse(json);
}

/** Counts the objects and arrays, up to `most` of each; also counts brackets in strings. */
export const countContainers = (json: string, most = Infinity): number =>
  countUpTo(most, json, '{') + countUpTo(most, json, '[');

/** Extracts the JSON object from a response, including JSONP; returns an empty string without an object. */
export const extractObject = (text: string): string =>
  text.includes('{') ? text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1) : '';

/** Writes a value on one line, byte for byte like a Handle server: Gson escapes U+2028 and U+2029. */
export const writeJson = (value: unknown): string =>
  JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');

/** Yields the elements of a valid JSON array as written. */
export function* stepElements(json: string): Generator<string, void, void> {
  let at = skipSpace(json, json.indexOf('[') + 1);
  while (at < json.length && json[at] !== ']') {
    const end = endOfValue(json, at);
    yield json.slice(at, end);
    at = skipSeparator(json, end);
  }
}

/** Returns the list `values` of a JSON object as written; the last if it is repeated. */
export function sliceValues(json: string): string {
  let found = '[]';
  let at = skipSpace(json, json.indexOf('{') + 1);
  while (at < json.length && json[at] !== '}') {
    const nameEnd = endOfString(json, at);
    const start = skipSpace(json, json.indexOf(':', nameEnd) + 1);
    const end = endOfValue(json, start);
    const name = json.slice(at, nameEnd);
    const isValues = name === '"values"' || (name.includes('\\') && JSON.parse(name) === 'values');
    if (isValues) found = json.slice(start, end);
    at = skipSeparator(json, end);
  }
  return found;
}

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
    if (code === QUOTE) {
      const end = json.indexOf('"', at + 1);
      // Most strings contain no quote.
      at = end !== -1 && json.charCodeAt(end - 1) !== BACKSLASH ? end : endOfString(json, at) - 1;
    } else if (code === OPEN_BRACKET || code === OPEN_BRACE) depth++;
    else if ((code === CLOSE_BRACKET || code === CLOSE_BRACE) && --depth === 0) return at + 1;
  }
  return json.length;
}

function countUpTo(most: number, json: string, bracket: '{' | '['): number {
  let count = 0;
  for (let at = json.indexOf(bracket); at !== -1 && count < most; at = json.indexOf(bracket, at + 1)) count++;
  return count;
}

/** A sequence of names with which objects begin. */
interface ObjectShape {
  /** Shapes with one more name, by that name. */
  longer: Map<string, ObjectShape>;
  /** The name that followed last, as written, because it usually follows again; empty if none has. */
  lastName: string;
  last: ObjectShape | undefined;
}

const createShape = (): ObjectShape => ({ longer: new Map(), lastName: '', last: undefined });

/** An open list or object. */
interface Container {
  /** Elements so far, if it is a list. */
  size: number;
  /** Names so far, if it is an object. */
  shape: ObjectShape | undefined;
}

/** A single pass over JSON, which may be invalid. It reads no further than to the first limit that is exceeded. */
class LimitScan {
  readonly #open: Container[] = [];
  readonly #noNames = createShape();
  #shapes = 0;
  #elements = 0;
  #values = 0;
  /** Whether the next string is a name. */
  #isNameNext = false;

  constructor(
    private readonly json: string,
    private readonly limits: JsonLimits,
  ) {}

  /** @throws JsonLimitError */
  run(): void {
    const json = this.json;
    for (let at = 0; at < json.length; at++) {
      const code = json.charCodeAt(at);
      if (code === QUOTE) {
        const end = endOfString(json, at);
        if (this.#isNameNext) this.#addName(at, end);
        at = end - 1;
      } else if (code === COMMA) this.#countNext(at);
      else if (code === OPEN_BRACKET || code === OPEN_BRACE) this.#openContainer(code === OPEN_BRACE);
      else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
        this.#open.pop();
        this.#isNameNext = false;
      }
    }
  }

  #addName(start: number, end: number): void {
    this.#isNameNext = false;
    const container = this.#open.at(-1);
    const { shape } = container ?? {};
    if (container === undefined || shape === undefined) return;
    if (shape.lastName.length !== end - start || !this.json.startsWith(shape.lastName, start)) {
      shape.lastName = this.json.slice(start, end);
      shape.last = shape.longer.get(shape.lastName) ?? this.#addShape(shape);
    }
    container.shape = shape.last;
  }

  #addShape({ longer, lastName }: ObjectShape): ObjectShape {
    if (++this.#shapes > MAX_SHAPES) throw moreThan(MAX_SHAPES, 'sequences of member names');
    const added = createShape();
    longer.set(lastName, added);
    return added;
  }

  #openContainer(isObject: boolean): void {
    if (this.#open.length === MAX_DEPTH)
      throw new JsonLimitError(`JSON nested deeper than ${MAX_DEPTH} levels`);
    this.#open.push({ size: 1, shape: isObject ? this.#noNames : undefined });
    this.#isNameNext = isObject;
    this.#count(1);
  }

  #countNext(comma: number): void {
    const container = this.#open.at(-1);
    this.#isNameNext = container?.shape !== undefined;
    const isInList = container !== undefined && !this.#isNameNext;
    if (isInList && ++container.size > this.limits.elements) throw longList(this.limits.elements);
    this.#count(isInList && isBareAfter(this.json, comma) ? 1 : 0);
  }

  #count(elements: number): void {
    this.#elements += elements;
    if (this.#elements > MAX_ELEMENTS) throw moreThan(MAX_ELEMENTS, 'elements');
    if (++this.#values > this.limits.values) throw moreThan(this.limits.values, 'values');
  }
}

const moreThan = (max: number, things: string): JsonLimitError =>
  new JsonLimitError(`JSON with more than ${max} ${things}`);

const longList = (max: number): JsonLimitError =>
  Object.assign(new JsonLimitError(`JSON with a list of more than ${max} elements`), { isLongList: true });

/** Whether a number or literal follows the comma in a list. */
const isBareAfter = (json: string, comma: number): boolean =>
  !'"{['.includes(json[skipSpace(json, comma + 1)] ?? '"');

/** Finds the end of a string with `indexOf` for speed, because strings are most of a record. */
export function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1 && json.charCodeAt(end - 1) === BACKSLASH && isEscaped(json, end))
    end = json.indexOf('"', end + 1);
  return end === -1 ? json.length + 1 : end + 1;
}

/** Whether an odd number of backslashes precedes `at`. The opening quote bounds the search. */
function isEscaped(json: string, at: number): boolean {
  let before = at - 1;
  while (json.charCodeAt(before) === BACKSLASH) before--;
  return (at - before) % 2 === 0;
}

export function skipSpace(json: string, start: number): number {
  let at = start;
  while (KINDS[json.charCodeAt(at)] === SPACE) at++;
  return at;
}

/** Skips white space and the comma after a value of valid JSON. */
function skipSeparator(json: string, start: number): number {
  let at = start;
  while (KINDS[json.charCodeAt(at)] === SPACE || json.charCodeAt(at) === COMMA) at++;
  return at;
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

/** Returns indented JSON with the same tokens, or `json` if that would be too long. `depth`: level of the first line. */
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
  #at = 0;
  #length = 0;
  #isInString = false;
  /** Whether the last byte was an opening bracket. Its line break depends on the next byte. */
  #isOpen = false;

  constructor(
    private readonly json: Uint8Array,
    private readonly output: Uint8Array,
    private depth: number,
  ) {}

  /** Returns the length of the output. */
  *run(): Steps<number> {
    const { length } = this.json;
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
      else this.#place(this.json[this.#at++] as number);
    }
  }

  /** Copies the rest of a string, up to `end`, or one byte further. */
  #copyString(end: number): void {
    const json = this.json;
    const output = this.output;
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
    if (kind === CLOSING) this.depth--;
    if (kind === CLOSING ? !this.#isOpen : this.#isOpen) this.#breakLine();
    this.output[this.#length++] = byte;
    this.#isOpen = kind === OPENING;
    if (kind === OTHER) return;
    if (kind === OPENING) this.depth++;
    else if (kind === SEPARATOR) this.#breakLine();
    else if (kind === COLON) this.#length++;
    else if (kind === STRING) this.#isInString = true;
  }

  #breakLine(): void {
    this.output[this.#length] = LINE_FEED;
    // Invalid JSON may close more brackets than it opens.
    this.#length += 1 + 2 * Math.max(0, this.depth);
  }
}
