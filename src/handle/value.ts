// Record values: JSON, permissions, and selection by index and type.
import { SMALL_CHARS, type Steps } from '../time-slicer.js';
import { type Bytes, toBytes, tryDecode } from './bytes.js';
import { foldHandle, upperAscii } from './handle.js';
import { stepElements, writeJson } from './json.js';

/** TTL in JSON: a number is relative (s), a string is an absolute ISO date. */
export type Ttl = number | string;

/** Default TTL of a value, which JSON may omit. */
export const DEFAULT_TTL_SECONDS = 86_400;

/** Formats seconds since 1970 as a Handle server does. */
export const isoSeconds = (seconds: number): string =>
  new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');

/** Reference to a handle's value, in references and administrators. Index 0 matches any index. */
export interface ValueReference {
  handle: string;
  index: number;
}

/** Parses `index:handle`; the index defaults to 0, as on a Handle server. */
export function parseReference(text: string): ValueReference {
  const [, index, handle] = /^(\d{1,10}):(.*)$/s.exec(text) ?? [];
  return { index: Number(index ?? 0), handle: handle ?? text };
}

/** Returns equal keys for references to the same value. The case of suffixes matters if `caseSensitive`. */
export const referenceKey = ({ index, handle }: ValueReference, caseSensitive: boolean): string =>
  `${index}:${foldHandle(handle, caseSensitive)}`;

/** A value in record interface JSON; `data` is not interpreted. */
export interface HandleValue {
  index: number;
  type: string;
  data: unknown;
  permissions?: string;
  ttl?: Ttl;
  timestamp?: string;
  references?: ValueReference[];
}

/** Selects values by index or type; selects all values if both lists are empty. */
export interface Selection {
  indexes: readonly number[];
  types: readonly string[];
}

/** Default permissions of a Handle server, which its JSON omits. */
export const DEFAULT_PERMISSIONS = '1110';

/** Substitute for malformed permissions, hidden from the public. Recordings have four digits or none. */
const UNREADABLE_PERMISSIONS = '1100';

/** Returns the last four digits, as servers (recording "PERM5"): administrator read and write, public read and write. */
export const lastFourPermissions = (permissions = DEFAULT_PERMISSIONS): string =>
  /^[01]*([01]{4})$/.exec(permissions)?.[1] ?? UNREADABLE_PERMISSIONS;

/** Whether the value is publicly readable. */
export const isPublic = ({ permissions }: Partial<HandleValue>): boolean =>
  lastFourPermissions(permissions)[2] === '1';

export const selectsAll = ({ indexes, types }: Selection): boolean =>
  indexes.length === 0 && types.length === 0;

type ValueFilter = (value: HandleValue) => boolean;

/** The predicate of each selection, because a batch uses one, of up to a megabyte, for each of its handles. */
const FILTERS = new WeakMap<Selection, ValueFilter>();

/** Returns the predicate for a selection. */
export function createValueFilter(selection: Selection): ValueFilter {
  const known = FILTERS.get(selection);
  if (known !== undefined) return known;
  const { indexes, types } = selection;
  const wantedIndexes = new Set(indexes);
  const isWantedType = createTypeTest(types);
  const filter: ValueFilter = selectsAll(selection)
    ? () => true
    : (value) => wantedIndexes.has(value.index) || isWantedType(value.type);
  FILTERS.set(selection, filter);
  return filter;
}

/**
 * Creates the type predicate. A trailing period selects a type and all its subtypes; both sides are
 * upper-cased. Uses sets, because query and record may each have a thousand types.
 */
function createTypeTest(types: readonly string[]): (type: string) => boolean {
  const wanted = types.map(upperAscii);
  const exact = new Set(wanted.filter((type) => !type.endsWith('.')));
  const families = new Set(wanted.filter((type) => type.endsWith('.')).map((type) => type.slice(0, -1)));
  const lengths = new Set([...families].map(({ length }) => length));
  return (given) => {
    const type = upperAscii(given);
    if (exact.has(type) || families.has(type)) return true;
    // Looks up only prefixes as long as a family, so that a thousand families or dots cost little.
    for (let dot = type.indexOf('.'); dot !== -1; dot = type.indexOf('.', dot + 1))
      if (lengths.has(dot) && families.has(type.slice(0, dot))) return true;
    return false;
  };
}

/** Public values as written by the server, and their TTLs, the default where `ttl` is missing. */
export interface PublicValues {
  values: Bytes;
  ttls: Ttl[];
  /** The values, already parsed. */
  parsed: HandleValue[];
}

/** White space between the values of an array; matches line breaks anywhere, and also such text in strings. */
const SPACE_BETWEEN = /\n|^\[\s|\s\]$|\}\s+,|,\s+\{/;

/**
 * Filters a `values` array, given as text and parsed: its public values, or all. Copies each value byte for byte,
 * except if the server wrote it over several lines.
 *
 * @throws TypeError for an element that is not a handle value
 */
export function* publicValues(
  valuesJson: string,
  parsed: readonly unknown[],
  takesAll = false,
): Steps<PublicValues> {
  const kept: HandleValue[] = [];
  const ttls: Ttl[] = [];
  // Yields only for long arrays, because a step costs more than a short value.
  const isLong = valuesJson.length > SMALL_CHARS;
  for (const each of parsed) {
    const value = assertValue(each);
    if (takesAll || isPublic(value)) {
      kept.push(value);
      ttls.push(value.ttl ?? DEFAULT_TTL_SECONDS);
    }
    if (isLong) yield;
  }
  const isAsWritten = !isLong && kept.length === parsed.length && !SPACE_BETWEEN.test(valuesJson);
  const json = isAsWritten ? valuesJson : yield* jsonOfKept(valuesJson, parsed, kept);
  return { values: toBytes(json), ttls, parsed: kept };
}

/** Copies the elements of an array that are in `kept`, in the same order. */
function* jsonOfKept(
  valuesJson: string,
  parsed: readonly unknown[],
  kept: readonly HandleValue[],
): Steps<string> {
  const copies: string[] = [];
  let at = 0;
  for (const element of stepElements(valuesJson)) {
    const value = parsed[at++];
    if (value === kept[copies.length]) copies.push(element.includes('\n') ? writeJson(value) : element);
    yield;
  }
  return `[${copies.join(',')}]`;
}

/** Whether all members of a value that other code relies on are valid, also those that resolution leaves to its clients. */
export function isCompleteValue(given: unknown): given is HandleValue {
  const value = tryDecode(assertValue, given);
  return (
    typeof value?.data === 'object' &&
    value.data !== null &&
    ['string', 'number', 'undefined'].includes(typeof value.ttl)
  );
}

/** Asserts the members of a value that resolution relies on. @throws TypeError */
export function assertValue(parsed: unknown): HandleValue {
  const value = parsed as Partial<HandleValue> | null | undefined;
  if (!Number.isInteger(value?.index) || typeof value?.type !== 'string')
    throw new TypeError('a value without index or type');
  if (value.permissions !== undefined && typeof value.permissions !== 'string')
    throw new TypeError('a value with permissions that are not a string');
  return value as HandleValue;
}
