// Command results of the simulated Redis, and the Redis rules for reading and writing numbers. Strings are
// byte strings (latin1, one character per byte).

/** A status reply like +OK. */
export class Status {
  constructor(readonly text: string) {}
}

/** An error reply. Its text starts with a code. */
export class ReplyError extends Error {
  override name = 'ReplyError';
}

/** A reply, with null for nil. */
export type Reply = string | number | null | Status | ReplyError | Reply[];

/** Thrown for a Redis feature that the simulation lacks. It is not a reply, and fails the test. */
export class NotSimulated extends Error {
  constructor(what: string) {
    super(`the simulated Redis does not have: ${what}`);
  }
}

export const OK = new Status('OK');

export const syntaxError = (): ReplyError => new ReplyError('ERR syntax error');
export const notAnInteger = (): ReplyError => new ReplyError('ERR value is not an integer or out of range');

const WHOLE = /^(0|-?[1-9]\d{0,18})$/;
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const INFINITE = /^([+-]?)inf(inity)?$/i;

/** Parses an integer. @throws ReplyError if Redis would reject the text */
export function toInteger(text: string, refusal = notAnInteger): number {
  if (!WHOLE.test(text)) throw refusal();
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new NotSimulated(`integers like ${text}`);
  return value;
}

/** Parses a complete text as strtod() does, or returns NaN. */
export function toFloat(text: string): number {
  const infinite = INFINITE.exec(text);
  if (infinite) return infinite[1] === '-' ? -Infinity : Infinity;
  return DECIMAL.test(text) ? Number(text) : NaN;
}

/** Formats a number as printf does with %.<precision>g. The precision must be at least 14. */
export function formatNumber(value: number, precision: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e14) return Object.is(value, -0) ? '-0' : String(value);
  if (Number.isNaN(value)) return 'nan';
  const sign = value < 0 ? '-' : '';
  return sign + (Number.isFinite(value) ? formatPositive(Math.abs(value), precision) : 'inf');
}

function formatPositive(value: number, precision: number): string {
  const { digits, exponent } = rounded(value, precision);
  if (exponent < -4 || exponent >= precision) {
    const magnitude = String(Math.abs(exponent)).padStart(2, '0');
    return `${withoutZeros(`${digits.slice(0, 1)}.${digits.slice(1)}`)}e${exponent < 0 ? '-' : '+'}${magnitude}`;
  }
  const padded = digits.padStart(digits.length + Math.max(0, -exponent), '0');
  const point = Math.max(0, exponent) + 1;
  return withoutZeros(`${padded.slice(0, point)}.${padded.slice(point)}`);
}

/** Rounds to a number of digits. Ties round to even, as in C, while JavaScript rounds them up. */
function rounded(value: number, precision: number): { digits: string; exponent: number } {
  const [up = '', exponent] = value.toExponential(precision - 1).split('e');
  const [exact = ''] = value.toExponential(precision + 29).split('e');
  const down = exact.slice(0, up.length);
  const isHalfway = /^50*$/.test(exact.slice(up.length));
  const mantissa = isHalfway && Number(down.at(-1)) % 2 === 0 ? down : up;
  return { digits: mantissa.replace('.', ''), exponent: Number(exponent) };
}

const withoutZeros = (digits: string): string =>
  digits.includes('.') ? digits.replace(/\.?0*$/, '') : digits;

/** Formats scores in replies, and numbers that a script passes to redis.call. */
export const formatDouble = (value: number): string => formatNumber(value, 17);
