// Numbers as HDLProxy reads and writes them: those of Java's Double.

const HEX = /^([+-]?)0x([\da-f]*)\.?([\da-f]*)p([+-]?\d{1,6})[fd]?$/i;
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?=[fd]?$)/i;

/** Undefined when it is no number. */
export function readDouble(text = ''): number | undefined {
  const trimmed = text.trim();
  if (/^[+-]?(?:NaN|Infinity)$/.test(trimmed)) return Number(trimmed);
  const decimal = DECIMAL.exec(trimmed)?.[0];
  return decimal === undefined ? readHex(trimmed) : Number(decimal);
}

/** `0x1.8p3` is 12. */
function readHex(text: string): number | undefined {
  const [, sign, whole = '', fraction = '', exponent] = HEX.exec(text) ?? [];
  if (exponent === undefined || whole + fraction === '') return undefined;
  const digits = parseInt(whole + fraction, 16) * 2 ** (Number(exponent) - 4 * fraction.length);
  return sign === '-' ? -digits : digits;
}

/** `1` is `1.0` (recordings "legacy: …showurls"). */
export const writeDouble = (value: number): string =>
  Number.isInteger(value) ? value.toFixed(1) : String(value);
