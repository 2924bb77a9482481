// Times for people. Coarse on purpose: a page stays the same, and revalidates, for a minute.

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** @example durationInWords(7_300_000) // '2 hours' */
export function durationInWords(ms: number): string {
  for (const [name, unitMs] of UNITS) {
    const count = Math.floor(ms / unitMs);
    if (count >= 2 || (count === 1 && name !== 'day')) return `${count} ${name}${count === 1 ? '' : 's'}`;
  }
  return 'less than a minute';
}

/** @example instant(0) // '1970-01-01 00:00:00 UTC' */
export const instant = (ms: number): string =>
  `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

/** A time to live as the record has it: seconds from reading, or a date. */
export const ttlInWords = (ttl: number | string | undefined): string =>
  typeof ttl === 'number' ? `${ttl} s` : ttl === undefined ? '' : `until ${ttl}`;
