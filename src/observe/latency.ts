// Latencies as counts in buckets: cheap to add to, easy to sum over workers.

/** Upper bounds in ms, each a third above the one before: 0.05 ms to a good minute. */
const FIRST_MS = 0.05;
const GROWTH = 1.35;
export const BUCKET_COUNT = 48;

export function bucketOf(ms: number): number {
  if (ms <= FIRST_MS) return 0;
  return Math.min(BUCKET_COUNT - 1, Math.ceil(Math.log(ms / FIRST_MS) / Math.log(GROWTH)));
}

/** The bound (ms) that so large a part stays below; null when nothing was measured. */
export function percentile(counts: readonly number[], part: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let seen = 0;
  const bucket = counts.findIndex((count) => (seen += count) >= part * total);
  return Number((FIRST_MS * GROWTH ** bucket).toPrecision(3));
}

export interface Percentiles {
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export const percentiles = (counts: readonly number[]): Percentiles => ({
  p50: percentile(counts, 0.5),
  p95: percentile(counts, 0.95),
  p99: percentile(counts, 0.99),
});
