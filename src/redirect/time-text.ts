// Durations and times in words.

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

const list = new Intl.ListFormat('en-GB');

const countOf = (count: number, unit: string): string => (count === 1 ? `one ${unit}` : `${count} ${unit}s`);

/** Whole seconds, exactly: `90_000` is `one day and one hour`. */
export function exactDuration(seconds: number): string {
  let left = seconds;
  const parts: string[] = [];
  for (const [unit, unitSeconds] of UNITS) {
    const count = Math.floor(left / unitSeconds);
    left -= count * unitSeconds;
    if (count > 0) parts.push(countOf(count, unit));
  }
  return list.format(parts);
}

/** Coarse, so that a page stays the same for a minute and revalidates. `7_300_000` is `2 hours`. */
export function coarseDuration(ms: number): string {
  for (const [unit, unitSeconds] of UNITS.slice(0, -1)) {
    const count = Math.floor(ms / 1000 / unitSeconds);
    if (count >= 2 || (count === 1 && unit !== 'day')) return countOf(count, unit);
  }
  return 'less than a minute';
}

export const formatInstant = (ms: number): string =>
  `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
