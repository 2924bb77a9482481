// The values of cache entries as objects. Large records are parsed once, however many requests show them.
import { LRUCache } from 'lru-cache';
import type { Entry } from '../cache/entry.js';
import { type Bytes, toText } from '../handle/bytes.js';
import { parseJson, stepElements } from '../handle/json.js';
import type { HandleValue } from '../handle/value.js';
import { type Steps, runToEnd } from '../time-slicer.js';

/** Of several requests: nobody may change them. */
export type ParsedValues = readonly HandleValue[];

/** Smaller records are parsed in less than half a millisecond, each time anew. */
const LARGE_CHARS = 16 * 1024;
/** Text and objects of a record take about four times its text. */
const MAX_CACHED_CHARS = 16 * 1024 * 1024;

const NO_VALUES: ParsedValues = [];

/**
 * By the text itself, because an entry is read from memory anew for each request. V8 hashes a text of this length by its
 * length, and comparing two of a megabyte takes less than a tenth of a millisecond.
 */
const parsed = new LRUCache<Bytes, ParsedValues>({
  maxSize: MAX_CACHED_CHARS,
  sizeCalculation: (_values, text) => text.length,
});

/** The public values in the order of the record. */
export const valuesOf = (entry: Pick<Entry, 'kind' | 'values'>): ParsedValues => runToEnd(readValues(entry));

/** The same in steps, for a request that must not hold the others. */
export function* readValues({ kind, values: text }: Pick<Entry, 'kind' | 'values'>): Steps<ParsedValues> {
  if (kind !== 'found') return NO_VALUES;
  if (text.length <= LARGE_CHARS) return parseJson(toText(text)) as HandleValue[];
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const values: HandleValue[] = [];
  for (const element of stepElements(toText(text))) {
    values.push(parseJson(element) as HandleValue);
    yield;
  }
  parsed.set(text, values);
  return values;
}
