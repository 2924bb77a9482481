// One value of a record as the record interface writes it, and which values a question is about.
import { type Bytes, toBytes, toText } from './bytes.js';
import { upperAscii } from './handle.js';
import { sliceElements, writeJson } from './json.js';

/** `ttl` as on the wire: a number is relative seconds, a string an absolute ISO date. */
export type Ttl = number | string;

/** A value of a handle, as references and administrators are named. Index 0 stands for any index. */
export interface ValueReference {
  handle: string;
  index: number;
}

/** A value as the record interface sends it; `data` is left as it came. */
export interface HandleValue {
  index: number;
  type: string;
  data: unknown;
  permissions?: string;
  ttl?: Ttl;
  timestamp?: string;
  references?: ValueReference[];
}

/** What a caller wants of a record: the union of indexes and types, or everything when both are empty. */
export interface Selection {
  indexes: readonly number[];
  types: readonly string[];
}

/** What a Handle server gives a value that is written without permissions, and leaves out when it reads it. */
export const DEFAULT_PERMISSIONS = '1110';

/** No server writes this (in the recordings there are four digits or none): the public is shown nothing. */
const UNREADABLE_PERMISSIONS = '1100';

/**
 * Read and write for administrators, read and write for the public: the last four digits, of which clients
 * send more, because a server never looks at the first of four (recording "PERM5").
 */
export const lastFourPermissions = (permissions = DEFAULT_PERMISSIONS): string =>
  /^[01]*([01]{4})$/.exec(permissions)?.[1] ?? UNREADABLE_PERMISSIONS;

/** True when everybody may read the value. */
export const isPublic = ({ permissions }: Pick<HandleValue, 'permissions'>): boolean =>
  lastFourPermissions(permissions)[2] === '1';

/** True when the whole record is asked for. */
export function selectsAll({ indexes, types }: Selection): boolean {
  return indexes.length === 0 && types.length === 0;
}

/** Makes the test that tells which values a selection is about. */
export function createValueFilter({
  indexes,
  types,
}: Selection): (value: Pick<HandleValue, 'index' | 'type'>) => boolean {
  if (selectsAll({ indexes, types })) return () => true;
  const wantedIndexes = new Set(indexes);
  const isWantedType = createTypeTest(types);
  return (value) => wantedIndexes.has(value.index) || isWantedType(value.type);
}

/**
 * A trailing period means the type itself and all its subtypes; both sides are upper-cased. A question may name
 * a thousand types, and a record may have as many values.
 */
function createTypeTest(types: readonly string[]): (type: string) => boolean {
  const wanted = types.map(upperAscii);
  const exact = new Set(wanted.filter((type) => !type.endsWith('.')));
  const families = new Set(wanted.filter((type) => type.endsWith('.')).map((type) => type.slice(0, -1)));
  const lengths = [...new Set([...families].map((family) => family.length))];
  return (given) => {
    const type = upperAscii(given);
    const isOfFamilyOf = (length: number): boolean =>
      (type.length === length || type[length] === '.') && families.has(type.slice(0, length));
    return exact.has(type) || lengths.some(isOfFamilyOf);
  };
}

/** The public values as they were written, and their TTLs. A missing `ttl` is the server's 86400. */
export interface PublicValues {
  values: Bytes;
  ttls: Ttl[];
}

/**
 * Keeps the publicly readable values of a `values` array, or those that `isKept`, given as text and parsed.
 * Each stays byte for byte as the server wrote it, unless it was written over several lines.
 *
 * @throws TypeError when an element is not a handle value
 */
export function publicValues(
  valuesJson: string,
  parsed: readonly unknown[],
  isKept: (value: HandleValue) => boolean = isPublic,
): PublicValues {
  const kept: string[] = [];
  const ttls: Ttl[] = [];
  for (const [at, slice] of sliceElements(valuesJson).entries()) {
    const value = assertValue(parsed[at]);
    if (!isKept(value)) continue;
    kept.push(slice.includes('\n') ? writeJson(value) : slice);
    ttls.push(value.ttl ?? 86_400);
  }
  return { values: toBytes(`[${kept.join(',')}]`), ttls };
}

/** The text of a record narrowed to what was asked for, or undefined when nothing matches. */
export function selectValues(values: Bytes, selection: Selection): string | undefined {
  const text = toText(values);
  if (selectsAll(selection)) return text;
  const wanted = createValueFilter(selection);
  const kept = sliceElements(text).filter((slice) => wanted(assertValue(JSON.parse(slice))));
  return kept.length === 0 ? undefined : `[${kept.join(',')}]`;
}

function assertValue(parsed: unknown): HandleValue {
  const value = parsed as Partial<HandleValue> | null | undefined;
  if (!Number.isInteger(value?.index) || typeof value?.type !== 'string') {
    throw new TypeError('a value without index or type');
  }
  if (value.permissions !== undefined && typeof value.permissions !== 'string') {
    throw new TypeError('a value whose permissions are not a string');
  }
  return value as HandleValue;
}
