// Numbers as HDLProxy reads and writes them: decimal ones of Java's Double.

/** A double has at most 17 significant digits; longer texts are not looked at. */
const MAX_CHARS = 32;

const DECIMAL = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)[fd]?$/i;

/** Undefined when it is no number. */
export function readDouble(text = ''): number | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_CHARS) return undefined;
  if (/^[+-]?(?:NaN|Infinity)$/.test(trimmed)) return Number(trimmed);
  const decimal = DECIMAL.exec(trimmed)?.[1];
  return decimal === undefined ? undefined : Number(decimal);
}

/** `1` is `1.0` (recordings "legacy: …showurls"). */
export const writeDouble = (value: number): string =>
  Number.isInteger(value) ? value.toFixed(1) : String(value);
