// Types and texts of the values that redirects read.
import { upperAscii } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';

/** The data of a value when they are text. */
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

/** Each redirect asks it of all values of a record, and nearly all of them differ in length or first letter. */
const beginsWith = (type: string, wanted: string): boolean =>
  ((type.charCodeAt(0) ^ wanted.charCodeAt(0)) & ~CASE_BIT) === 0 &&
  upperAscii(type.slice(0, wanted.length)) === wanted;

/** In which ASCII letters differ by case. */
const CASE_BIT = 0x20;
