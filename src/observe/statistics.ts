// Computes the statistics of the instance since its start from its metrics.
import { CATALOGUE } from '../errors.js';
import { type MetricEntry, METRICS, VALUES } from './metric-list.js';
import type { Metrics, StoreUsage } from './metrics.js';
import type { Distribution, LabelledValue } from './series.js';

interface InstanceFacts {
  version: string;
  startedAt: Date;
  redis: 'up' | 'down' | 'disabled';
  logLevel: string;
}

export type Statistics = ReturnType<typeof readStatistics>;

export function readStatistics(
  metrics: Metrics,
  { version, startedAt, redis, logLevel }: InstanceFacts,
  uptimeMs: number,
) {
  const { read, recent } = metrics;
  const { rss, heapUsed } = process.memoryUsage();
  const eventLoopDelaySeconds = sum(read(METRICS.eventLoopDelay));
  return {
    version,
    startedAt: startedAt.toISOString(),
    uptimeSeconds: Math.round(uptimeMs / 1000),
    requests: readRequests(metrics),
    upstream: readUpstream(metrics),
    ...recent.handles(),
    recentErrors: recent.errors(),
    redis: { state: redis, errors: sum(read(METRICS.redisErrors)) },
    memory: readMemory(metrics),
    logLevel,
    process: { pid: process.pid, rssBytes: rss, heapUsedBytes: heapUsed, eventLoopDelaySeconds },
  };
}

function readRequests({ read, distributionsOf }: Metrics) {
  const readings = read(METRICS.requests);
  const byResult = sumBy(readings, 'result');
  const { hit: hits = 0, miss: misses = 0, stale = 0, error: errors = 0 } = byResult;
  return {
    total: sum(readings),
    hits,
    misses,
    stale,
    errors,
    /** Ratio of hits and stale hits to cacheable reads; null if there were none. */
    hitRatio: hitRatio({ hits, misses, stale }),
    byResult,
    /** Requests by interface, for example `record`, `redirect` or `native-udp`. */
    byInterface: sumBy(readings, 'interface'),
    latency: latencyOf(METRICS.requestDuration, distributionsOf),
  };
}

function readUpstream({ read, recent, distributionsOf }: Metrics) {
  const requests = read(METRICS.upstreamRequests);
  return {
    requests: sum(requests),
    failures: sum(requests.filter(({ labels }) => String(labels['outcome']) in CATALOGUE)),
    inFlight: sum(read(METRICS.upstreamInFlight)),
    queued: sum(read(METRICS.upstreamQueued)),
    rejected: sum(read(METRICS.rejected)),
    latency: latencyOf(METRICS.upstreamRequestDuration, distributionsOf),
    servers: read(METRICS.breakerOpen).map(({ labels, value }) => {
      const server = String(labels['server']);
      return { server, breaker: value === 1 ? 'open' : 'closed', ...recent.serverState(server) };
    }),
  };
}

function readMemory({ read }: Metrics): (StoreUsage & { evictions: number })[] {
  const sumOf = (metric: MetricEntry, store: string): number => sumBy(read(metric), 'store')[store] ?? 0;
  return VALUES.store.map((store) => ({
    store,
    entries: sumOf(METRICS.cacheEntries, store),
    bytes: sumOf(METRICS.cacheBytes, store),
    evictions: sumOf(METRICS.cacheEvictions, store),
  }));
}

/** Merges all series. Includes the buckets, so that readers can compute percentiles between two readings. */
function latencyOf(metric: MetricEntry, distributionsOf: (metric: MetricEntry) => readonly Distribution[]) {
  const distributions = distributionsOf(metric);
  const countIn = (at: number): number =>
    distributions.reduce((all, { counts }) => all + (counts[at] ?? 0), 0);
  let count = 0;
  const bounds = distributions.length === 0 ? [] : (metric.buckets ?? []);
  const buckets = bounds.map((le, at) => ({ le, count: (count += countIn(at)) }));
  const histogram: Histogram = { count: count + countIn(bounds.length), buckets };
  return { ...percentilesOf(histogram), ...histogram };
}

export function hitRatio({
  hits,
  misses,
  stale,
}: Record<'hits' | 'misses' | 'stale', number>): number | null {
  const all = hits + stale + misses;
  return all === 0 ? null : Number(((hits + stale) / all).toFixed(4));
}

const sum = (readings: readonly LabelledValue[]): number =>
  readings.reduce((all, { value }) => all + value, 0);

/** Sums readings by label value and omits zero values. */
function sumBy(readings: readonly LabelledValue[], label: string): Partial<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const { labels, value } of readings) {
    const name = String(labels[label]);
    if (value !== 0) sums[name] = (sums[name] ?? 0) + value;
  }
  return sums;
}

interface Bucket {
  /** Upper bound in seconds. */
  le: number;
  /** Number of measurements up to `le`. */
  count: number;
}

interface Histogram {
  count: number;
  /** All buckets except `+Inf`. */
  buckets: readonly Bucket[];
}

/** Latency percentiles in seconds; null if there are no measurements. */
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

/** Interpolates a quantile (seconds) within its bucket; beyond the last bound, returns that bound. */
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
