// The values of cache entries as objects. Large records are parsed once, however many requests show them.
import { LRUCache } from 'lru-cache';
import type { Entry } from '../cache/entry.js';
import { type Bytes, toText } from '../handle/bytes.js';
import { parseJson, stepElements } from '../handle/json.js';
import type { HandleValue } from '../handle/value.js';
import type { Steps } from '../time-slicer.js';

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
export function valuesOf(entry: Pick<Entry, 'kind' | 'values'>): ParsedValues {
  const known = knownValuesOf(entry);
  if (known !== undefined) return known;
  const values = parseJson(toText(entry.values)) as HandleValue[];
  parsed.set(entry.values, values);
  return values;
}

/** The same in steps, for a request that must not hold the others. */
export function* readValues(entry: Pick<Entry, 'kind' | 'values'>): Steps<ParsedValues> {
  const known = knownValuesOf(entry);
  if (known !== undefined) return known;
  const values: HandleValue[] = [];
  for (const element of stepElements(toText(entry.values))) {
    values.push(parseJson(element) as HandleValue);
    yield;
  }
  parsed.set(entry.values, values);
  return values;
}

/** Undefined when a large record has to be parsed. */
function knownValuesOf({ kind, values }: Pick<Entry, 'kind' | 'values'>): ParsedValues | undefined {
  if (kind !== 'found') return NO_VALUES;
  if (values.length > LARGE_CHARS) return parsed.get(values);
  return parseJson(toText(values)) as HandleValue[];
}
