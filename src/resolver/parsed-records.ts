// The values of cache entries as objects. Large records are parsed once and cached, and a loaded record is not parsed again.
import { LRUCache } from 'lru-cache';
import type { Entry } from '../cache/entry.js';
import { type Bytes, toText } from '../handle/bytes.js';
import { parseJson, stepElements } from '../handle/json.js';
import type { HandleValue } from '../handle/value.js';
import { type Steps, runToEnd } from '../time-slicer.js';

/** Shared by several requests, so they must not be changed. */
export type ParsedValues = readonly HandleValue[];

/** Smaller records are fast to parse, so they are parsed on every use. */
const LARGE_CHARS = 16 * 1024;
/** Text and objects together take about four times the characters. */
const MAX_CACHED_CHARS = 16 * 1024 * 1024;

const NO_VALUES: ParsedValues = [];

/**
 * Parsed values by text, because each request gets a new string from memory. That is cheap: V8 hashes a long string by its
 * length, and comparing two equal ones is a memory comparison.
 */
const parsed = new LRUCache<Bytes, ParsedValues>({
  maxSize: MAX_CACHED_CHARS,
  sizeCalculation: (_values, text) => text.length,
});

/** The record that was loaded last, whose request usually reads its values next. */
let loaded: { text: Bytes; values: ParsedValues } = { text: '' as Bytes, values: NO_VALUES };

/** Keeps the values of a loaded record until the next one. */
export function keepLoaded(text: Bytes, values: ParsedValues): void {
  if (text.length <= LARGE_CHARS) loaded = { text, values };
}

/** The public values in the order of the record. */
export const valuesOf = (entry: Pick<Entry, 'kind' | 'values'>): ParsedValues => runToEnd(readValues(entry));

/** `valuesOf` in steps, so that a large record does not block other requests. */
export function* readValues({ kind, values: text }: Pick<Entry, 'kind' | 'values'>): Steps<ParsedValues> {
  if (kind !== 'found') return NO_VALUES;
  if (text === loaded.text) return loaded.values;
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
