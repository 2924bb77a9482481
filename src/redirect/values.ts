// Selects the record values that affect redirects, and reads their types and texts.
import type { Entry } from '../cache/entry.js';
import type { HandleValue } from '../handle/value.js';
import { type ParsedValues, readValues } from '../resolver/parsed-records.js';
import { type RunSteps, flatMapGroups } from '../time-slicer.js';
import type { RedirectQuery } from './request.js';

/** Number of values checked between yields. */
const VALUES_PER_STEP = 200;

/** Reads the values that affect redirects. */
export type RedirectValues = ReturnType<typeof createRedirectValues>;

/** `types`: families besides URL, in upper case. */
export function createRedirectValues(types: readonly string[]) {
  const mayMatter = (value: HandleValue): boolean => {
    if (isUrlFamily(value) || isOfType(value, 'HS_ALIAS')) return true;
    for (const family of types) if (isFamily(value, family)) return true;
    return false;
  };
  /** Cached results for large records, by parsed record. */
  const found = new WeakMap<ParsedValues, readonly HandleValue[]>();
  return {
    mayMatter,
    /** Returns the values that affect redirects; caches those of large records, which may hold ten thousand others. */
    async read(entry: Entry, run: RunSteps): Promise<readonly HandleValue[]> {
      const all = await readValues(entry, run);
      if (all.length <= VALUES_PER_STEP) return all.filter(mayMatter);
      const kept = found.get(all) ?? (await run(filterInSteps(all, mayMatter), entry.values.length));
      found.set(all, kept);
      return kept;
    },
  };
}

/** Returns the values that match the query, in record order. */
export async function selectedValues(
  entry: Entry,
  { isSelected }: RedirectQuery,
  run: RunSteps,
): Promise<ParsedValues> {
  const all = await readValues(entry, run);
  return isSelected === undefined ? all : run(filterInSteps(all, isSelected), entry.values.length);
}

const filterInSteps = (values: ParsedValues, isKept: (value: HandleValue) => boolean) =>
  flatMapGroups(values, (some) => some.filter(isKept), VALUES_PER_STEP);

/** Returns a value's data if it is text. */
export function textOf({ data }: HandleValue): string | undefined {
  const { format, value } = (data ?? {}) as { format?: unknown; value?: unknown };
  return format === 'string' && typeof value === 'string' ? value : undefined;
}

/** Ignores ASCII case, because ePIC records contain `url`. `wanted` must be in upper case. */
export const isOfType = ({ type }: HandleValue, wanted: string): boolean =>
  type.length === wanted.length && beginsWith(type, wanted);

/** Returns the values of a type, in record order. */
export const valuesOfType = (values: readonly HandleValue[], wanted: string): HandleValue[] =>
  values.filter((value) => isOfType(value, wanted));

/** Whether the type is `URL` in either of its two spellings, or a subtype. */
export const isUrlFamily = (value: HandleValue): boolean =>
  isFamily(value, 'URL') || isOfType(value, '0.TYPE/URL');

/** Whether URL values can be a target: those of type 0.TYPE/URL alone are none (recording "legacy: 0.TYPE/URL alone"). */
export const hasUrl = (values: readonly HandleValue[]): boolean => hasFamily(values, 'URL');

/** Whether the type is `URL` in either of its two spellings. */
export const isUrl = (value: HandleValue): boolean => isOfType(value, 'URL') || isOfType(value, '0.TYPE/URL');

export const isUrlSubtype = ({ type }: HandleValue): boolean => beginsWith(type, 'URL.');

/** Whether the type is `family` or one of its subtypes; `family` must be in upper case. */
const isFamily = ({ type }: HandleValue, family: string): boolean =>
  (type.length === family.length || type[family.length] === '.') && beginsWith(type, family);

export const hasFamily = (values: readonly HandleValue[], family: string): boolean =>
  values.some((value) => isFamily(value, family));

/** Returns for each family the texts of its values, in record order; empty for data that is no text. */
export const textsOf = (values: readonly HandleValue[], families: readonly string[]): string[][] =>
  families.map((family) =>
    values.filter((value) => isFamily(value, family)).map((value) => textOf(value) ?? ''),
  );

/** Compares letter by letter, because each redirect checks all values and most differ in the first. */
function beginsWith(type: string, wanted: string): boolean {
  for (let at = 0; at < wanted.length; at++) {
    const code = type.charCodeAt(at);
    const isLower = code >= 0x61 && code <= 0x7a;
    if ((isLower ? code - CASE_BIT : code) !== wanted.charCodeAt(at)) return false;
  }
  return true;
}

/** The bit that distinguishes upper- and lower-case ASCII letters. */
const CASE_BIT = 0x20;
