// Latency histograms: cheap to add to, summed over seconds.

/** Upper bounds grow by a third, from 0.05 ms to over a minute. */
const FIRST_MS = 0.05;
const GROWTH = 1.35;
export const BUCKET_COUNT = 48;

export function bucketOf(ms: number): number {
  if (ms <= FIRST_MS) return 0;
  return Math.min(BUCKET_COUNT - 1, Math.ceil(Math.log(ms / FIRST_MS) / Math.log(GROWTH)));
}

/** Upper bound (ms) of the bucket of a percentile (0 to 1); null without measurements. */
function percentile(counts: readonly number[], rank: number): number | null {
  const total = counts.reduce((all, count) => all + count, 0);
  if (total === 0) return null;
  let sum = 0;
  const bucket = counts.findIndex((count) => (sum += count) >= rank * total);
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
