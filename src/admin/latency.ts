// Percentiles of a cumulative histogram, by linear interpolation like `histogram_quantile` of Prometheus.

interface Bucket {
  /** Upper bound in seconds. */
  le: number;
  /** Cumulative. */
  count: number;
}

export interface Histogram {
  count: number;
  /** Without the one of all. */
  buckets: readonly Bucket[];
}

/** In seconds; null without measurements. */
export interface Percentiles {
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export const percentilesOf = (histogram: Histogram): Percentiles => ({
  p50: quantile(histogram, 0.5),
  p95: quantile(histogram, 0.95),
  p99: quantile(histogram, 0.99),
});

/** The greatest bound, where it is beyond. */
function quantile({ count, buckets }: Histogram, rank: number): number | null {
  if (count === 0) return null;
  const wanted = rank * count;
  let lower: Bucket = { le: 0, count: 0 };
  for (const bucket of buckets) {
    if (bucket.count >= wanted) {
      const part = (wanted - lower.count) / (bucket.count - lower.count);
      return Number((lower.le + (bucket.le - lower.le) * part).toPrecision(3));
    }
    lower = bucket;
  }
  return lower.le;
}

/** What was measured between two readings. */
export const histogramBetween = (older: Histogram, newer: Histogram): Histogram => ({
  count: newer.count - older.count,
  buckets: newer.buckets.map(({ le, count }, at) => ({ le, count: count - (older.buckets[at]?.count ?? 0) })),
});
