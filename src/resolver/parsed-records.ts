// Parses the values of cache entries. Large records are parsed once and cached.
import { LRUCache } from 'lru-cache';
import type { StoredValues } from '../cache/entry.js';
import { type Bytes, toText } from '../handle/bytes.js';
import { countContainers, parseJson, stepElements } from '../handle/json.js';
import type { Answer } from '../handle/outcome.js';
import { type HandleValue, type Selection, createValueFilter, selectsAll } from '../handle/value.js';
import { SMALL_CHARS, type Steps, runToEnd } from '../time-slicer.js';

/** Parsed values, shared by several requests, which must not modify them. */
export type ParsedValues = readonly HandleValue[];

/** Maximum total weight of the cached records. Text and objects together use about four times as many bytes. */
const MAX_CACHED_WEIGHT = 16 * 1024 * 1024;
/** Weight of an object or array besides its text, because an empty one of two characters uses 56 bytes. */
const CONTAINER_WEIGHT = 12;

const NO_VALUES: ParsedValues = [];

/**
 * Parsed values of large records by text, because memory returns a new string for each request. The lookup is cheap: V8
 * hashes a long string by its length, and compares equal strings with a memory comparison.
 */
const parsed = new LRUCache<Bytes, ParsedValues>({
  maxSize: MAX_CACHED_WEIGHT,
  sizeCalculation: (_values, text) => text.length + CONTAINER_WEIGHT * countContainers(text),
});

/** The last loaded record, whose values are usually read next, by the same request. */
let loaded: { text: Bytes; values: ParsedValues } = { text: '' as Bytes, values: NO_VALUES };

/** Retains the parsed values of a loaded record, unless it is large, until the next such load. */
export function keepLoaded(answer: Answer): void {
  if (answer.kind !== 'found' || answer.parsed === undefined) return;
  const { values: text, parsed: values } = answer;
  if (text.length <= SMALL_CHARS) loaded = { text, values };
}

/** Returns the public values in record order. */
export const valuesOf = (entry: StoredValues): ParsedValues => readValues(entry, runToEnd);

/** Returns the public values in record order. `run` parses those of a large record, in steps. */
export function readValues<R>(
  entry: StoredValues,
  run: (parsing: Steps<ParsedValues>, chars: number) => R,
): ParsedValues | R {
  return knownValues(entry) ?? run(parseInSteps(entry.values), entry.values.length);
}

/** Returns the values of a small or recently parsed record; undefined for a large one. */
function knownValues({ kind, values: text }: StoredValues): ParsedValues | undefined {
  if (kind !== 'found') return NO_VALUES;
  if (text === loaded.text) return loaded.values;
  return text.length <= SMALL_CHARS ? (parseJson(toText(text)) as HandleValue[]) : parsed.get(text);
}

function* parseInSteps(text: Bytes): Steps<ParsedValues> {
  const values: HandleValue[] = [];
  for (const element of stepElements(toText(text))) {
    values.push(parseJson(element) as HandleValue);
    yield;
  }
  parsed.set(text, values);
  return values;
}

/** Returns the JSON of the selected public values, as stored, in steps; undefined if none matches. */
export function* selectJson(entry: StoredValues, selection: Selection): Steps<string | undefined> {
  if (entry.kind !== 'found') return undefined;
  const json = toText(entry.values);
  if (selectsAll(selection)) return json;
  const values = knownValues(entry) ?? (yield* parseInSteps(entry.values));
  const isWanted = createValueFilter(selection);
  const kept: string[] = [];
  let at = 0;
  for (const element of stepElements(json)) {
    const value = values[at++];
    if (value !== undefined && isWanted(value)) kept.push(element);
    yield;
  }
  return kept.length === 0 ? undefined : `[${kept.join(',')}]`;
}
