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

/** True when everybody may read the value: the third permission, which is set unless written otherwise. */
export function isPublic(value: Pick<HandleValue, 'permissions'>): boolean {
  return value.permissions === undefined || value.permissions[2] === '1';
}

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
