// One value of a record as the record interface writes it, and which values a question is about.
import { upperAscii } from './handle.js';

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
export function asksForAll({ indexes, types }: Selection): boolean {
  return indexes.length === 0 && types.length === 0;
}

/** Makes the test that tells which values a selection is about. */
export function selects({
  indexes,
  types,
}: Selection): (value: Pick<HandleValue, 'index' | 'type'>) => boolean {
  if (asksForAll({ indexes, types })) return () => true;
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
