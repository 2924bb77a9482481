// The values of a record that redirects read, with their types and texts.
import { upperAscii } from '../handle/handle.js';
import { type HandleValue, type Selection, createValueFilter, selectsAll } from '../handle/value.js';
import type { Entry } from '../cache/entry.js';
import { type ParsedValues, readValues } from '../resolver/parsed-records.js';
import type { Steps } from '../time-slicer.js';

/** Values read between two yields. */
const VALUES_PER_STEP = 200;

/** Results for large records, found once per parsed record. */
const found = new WeakMap<ParsedValues, readonly HandleValue[]>();

/** The values on which redirects depend. A record may hold ten thousand others, which are checked only once. */
export function* redirectValues(entry: Pick<Entry, 'kind' | 'values'>): Steps<readonly HandleValue[]> {
  const all = yield* readValues(entry);
  if (all.length <= VALUES_PER_STEP) return all.filter(mayMatter);
  const known = found.get(all);
  if (known !== undefined) return known;
  const kept = yield* filterInSteps(all, mayMatter);
  found.set(all, kept);
  return kept;
}

/** All values that a request selects, in the order of the record. */
export function* selectedValues(
  entry: Pick<Entry, 'kind' | 'values'>,
  selection: Selection,
): Steps<ParsedValues> {
  const all = yield* readValues(entry);
  return selectsAll(selection) ? all : yield* filterInSteps(all, createValueFilter(selection));
}

function* filterInSteps(
  values: ParsedValues,
  isKept: (value: HandleValue) => boolean,
): Steps<readonly HandleValue[]> {
  const kept: HandleValue[] = [];
  for (const [at, value] of values.entries()) {
    if (isKept(value)) kept.push(value);
    if (at % VALUES_PER_STEP === 0) yield;
  }
  return kept;
}

/** The data of a value if it is text. */
export function textOf({ data }: HandleValue): string | undefined {
  const { format, value } = (data ?? {}) as { format?: unknown; value?: unknown };
  return format === 'string' && typeof value === 'string' ? value : undefined;
}

/** Ignores ASCII case: ePIC records hold `url` and `10320/LOC`. */
export const isOfType = ({ type }: HandleValue, ...types: string[]): boolean =>
  types.some((wanted) => type.length === wanted.length && beginsWith(type, wanted));

/** `URL.` and its subtypes. */
export const isUrlSubtype = ({ type }: HandleValue): boolean => beginsWith(type, 'URL.');

/** The type itself and its subtypes; `family` in upper case. */
export const isFamily = ({ type }: HandleValue, family: string): boolean =>
  (type.length === family.length || type[family.length] === '.') && beginsWith(type, family);

const FAMILIES: readonly string[] = ['URL', '10320/LOC', '10320/LINKS', '10320/HEADERS'];

export const mayMatter = (value: HandleValue): boolean =>
  isOfType(value, 'HS_ALIAS', '0.TYPE/URL') || FAMILIES.some((family) => isFamily(value, family));

/** Called for all values of a record on each redirect; nearly all differ in the first letter, which is compared first. */
const beginsWith = (type: string, wanted: string): boolean =>
  type.startsWith(wanted) ||
  (((type.charCodeAt(0) ^ wanted.charCodeAt(0)) & ~CASE_BIT) === 0 &&
    upperAscii(type.slice(0, wanted.length)) === wanted);

/** The bit in which upper- and lower-case ASCII letters differ. */
const CASE_BIT = 0x20;
