// Lists of texts, such as the handles of a prefix: parsed in steps, written in parts.
import type { Steps } from '../time-slicer.js';
import { JsonLimitError, endOfString, skipSpace, writeJson } from './json.js';

/** Characters of a list to parse in one step, which takes a fraction of a millisecond. */
const STEP_CHARS = 16 * 1024;

/** Maximum length of JSON besides its list: a Handle server sends four short members. */
const MAX_REST_CHARS = 16 * 1024;

/** The texts of a list, without its nulls, and the JSON around them. */
interface ParsedTexts {
  texts: string[];
  /** The JSON with an empty list, which is parsed next; anything else in the list remains. */
  rest: string;
}

/** Parses a list, or the list with the name `handles` in an object, in steps. @throws SyntaxError, JsonLimitError */
export function* parseTexts(json: string): Steps<ParsedTexts> {
  const texts: string[] = [];
  const start = findList(json) + 1;
  const end = start === 0 ? 0 : yield* parseElements(json, start, texts);
  if (json.length - (end - start) > MAX_REST_CHARS)
    throw new JsonLimitError('no JSON with a single list of texts');
  return { texts, rest: json.slice(0, start) + json.slice(end) };
}

/** Returns the index of the opening bracket of the list; -1 if it is not near the start. */
function findList(json: string): number {
  let name: string | undefined;
  for (let at = 0; at < json.length && at < MAX_REST_CHARS; at++) {
    if (json[at] === '[' && (name ?? '"handles"') === '"handles"') return at;
    if (json[at] !== '"') continue;
    const end = endOfString(json, at);
    name = json.slice(at, end);
    at = end - 1;
  }
  return -1;
}

/** Adds the texts up to the first element of another kind; returns the index behind them. */
function* parseElements(json: string, start: number, texts: string[]): Generator<void, number, void> {
  let [open, from, at] = ['[', start, start];
  for (;;) {
    const end = skipSpace(json, endOfText(json, skipSpace(json, at)));
    // A handle of 2048 bytes has 12,288 characters if all are escaped.
    if (end - at > STEP_CHARS) throw new JsonLimitError(`a text of more than ${STEP_CHARS} characters`);
    const isLast = json[end] !== ',';
    if (isLast || end - from >= STEP_CHARS) {
      addTexts(texts, `${open}${json.slice(from, end)}]`);
      yield;
      // The next piece begins with its comma, so that a comma without an element behind it is invalid.
      [open, from] = ['[null', end];
    }
    if (isLast) return end;
    at = end + 1;
  }
}

/** Returns the index behind a text or null; `at` for anything else. */
function endOfText(json: string, at: number): number {
  if (json[at] === '"') return endOfString(json, at);
  return json.startsWith('null', at) ? at + 'null'.length : at;
}

function addTexts(texts: string[], json: string): void {
  for (const text of JSON.parse(json) as (string | null)[]) if (text !== null) texts.push(text);
}

/** Writes the elements of a JSON list, without its brackets. */
export const writeTexts = (texts: readonly string[]): string => writeJson(texts).slice(1, -1);

/** Returns the total length of texts (characters). */
export const charsIn = (texts: readonly string[]): number =>
  texts.reduce((sum, { length }) => sum + length, 0);
