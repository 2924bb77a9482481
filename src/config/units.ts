// Durations (`60s`) and sizes (`256MiB`) as people write them: to milliseconds and to bytes.

const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const BYTES = { B: 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };

/** Milliseconds of a duration such as `250ms`, `1.8s` or `24h`; undefined when it is not one. */
export function parseDuration(text: string): number | undefined {
  return parse(text, MILLISECONDS);
}

/** Bytes of a size such as `8KiB` or `256MiB`; undefined when it is not one. */
export function parseSize(text: string): number | undefined {
  return parse(text, BYTES);
}

function parse(text: string, units: Record<string, number>): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([A-Za-z]+)$/.exec(text) ?? [];
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined;
  return amount === undefined || factor === undefined ? undefined : Math.round(Number(amount) * factor);
}
