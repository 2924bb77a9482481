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
  types.includes(upperAscii(type));

/** `URL.` and its subtypes. */
export const isUrlSubtype = ({ type }: HandleValue): boolean => upperAscii(type).startsWith('URL.');

/** The type itself and its subtypes; `family` in upper case. */
export const isFamily = ({ type }: HandleValue, family: string): boolean => {
  const upper = upperAscii(type);
  return upper === family || upper.startsWith(`${family}.`);
};
