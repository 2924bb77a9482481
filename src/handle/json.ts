// Handle server JSON: parsed within bounds, written like Gson without HTML escaping, and sliced.

/**
 * Maximum nesting depth. `JSON.parse` accepts any depth, but `JSON.stringify` (for `pretty`) recurses and
 * overflows the stack on much deeper input.
 */
const MAX_DEPTH = 1000;

/** Thrown for JSON nested deeper than any record. */
export class NestingError extends Error {
  constructor() {
    super(`JSON nested deeper than ${MAX_DEPTH} levels`);
  }
}

/** Parses untrusted JSON. @throws NestingError, or SyntaxError for invalid JSON */
export function parseJson(json: string): unknown {
  if (json.length > MAX_DEPTH && hasManyBrackets(json) && isTooDeep(json)) throw new NestingError();
  return JSON.parse(json);
}

/** A fast pre-check for deep nesting: most records have fewer brackets than the maximum depth. */
const hasManyBrackets = (json: string): boolean =>
  countUpTo(MAX_DEPTH + 1, json, '{') + countUpTo(MAX_DEPTH + 1, json, '[') > MAX_DEPTH;

/** Extracts the JSON object from a response, including JSONP; returns an empty string without an object. */
export const extractObject = (text: string): string =>
  text.includes('{') ? text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1) : '';

/** Escapes U+2028 and U+2029 like Gson; JSON.stringify leaves them bare. */
const asGson = (json: string): string => json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');

/** Writes a value on one line, byte for byte like a Handle server. */
export function writeJson(value: unknown): string {
  return asGson(JSON.stringify(value));
}

/** Reformats JSON with two-space indentation, like a Handle server for `pretty`. */
export function prettyJson(json: string): string {
  return asGson(JSON.stringify(JSON.parse(json), null, 2));
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

// Character codes of JSON syntax.
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
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

function isTooDeep(json: string): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at) - 1;
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--;
    else if ((code === OPEN_BRACKET || code === OPEN_BRACE) && ++depth > MAX_DEPTH) return true;
  }
  return false;
}

/** Finds the end of a string with `indexOf` for speed, because strings are most of a record. */
export function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf('"', end + 1);
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
