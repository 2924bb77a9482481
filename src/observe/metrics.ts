// The metrics of one process. compose connects the callbacks of other modules to these functions.
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { METRICS, type MetricEntry } from './metric-list.js';

export interface RequestSample {
  /** The interface: `record`, `v2` or `redirect`. */
  family: string;
  result: string;
  status: number;
  /** Undefined for responses too fast to be measured. */
  ms?: number;
  /** Number of such requests, by default one. */
  count?: number;
}

export interface StoreUsage {
  store: string;
  entries: number;
  bytes: number;
}

/** Use of the concurrency limit of the upstream. */
export interface LimitUsage {
  /** `read` or `passed`. */
  kind: string;
  running: number;
  waiting: number;
}

export interface Metrics {
  countRequest(request: RequestSample): void;
  countInternalError(): void;
  /** `flush` is called before each scrape, for callers that count by themselves. */
  registerFlush(flush: () => void): void;
  countUpstreamRequest(answer: { outcome: string; ms: number }): void;
  setBreakerState(state: string, server: string): void;
  countEviction(store: string): void;
  countStale: (reason: string) => void;
  countRedisError(command: string): void;
  setRedisState(state: 'up' | 'lost'): void;
  countRejected(kind: string): void;
  countRateLimited(): void;
  countDroppedConnection(): void;
  /** These read their values at each scrape. */
  registerStoreUsage(read: () => readonly StoreUsage[]): void;
  registerLimitUsage(read: () => readonly LimitUsage[]): void;
  registerEventLoopDelay(readMs: () => number): void;
  /** The text that Prometheus scrapes. */
  exposition(): Promise<string>;
  readonly contentType: string;
  readonly registry: Registry;
}

/** Seconds, from a fast upstream in the same network to the default `upstream.timeout`. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Default gauges of prom-client with a counter suffix, which promtool rejects; others report the same by type. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/** Each call has its own registry, so that two proxies in one process (tests) do not mix. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return {
    ...createRequestMetrics(registry),
    ...createUpstreamMetrics(registry),
    ...createCacheMetrics(registry),
    ...createServerMetrics(registry),
    exposition: () => registry.metrics(),
    registry,
    contentType: registry.contentType,
  };
}

type Reading = readonly [labels: Record<string, string>, value: number];

/** A gauge whose values are read at each scrape. */
function addGauge(registry: Registry, metric: MetricEntry, read: () => readonly Reading[]): void {
  new Gauge({
    ...metric,
    registers: [registry],
    collect() {
      for (const [labels, value] of read()) this.set(labels, value);
    },
  });
}

function createRequestMetrics(registry: Registry) {
  const registers = [registry];
  const flushes: (() => void)[] = [];
  const requests = new Counter({
    ...METRICS.requests,
    registers,
    collect() {
      for (const flush of flushes) flush();
    },
  });
  const seconds = new Histogram({ ...METRICS.requestSeconds, buckets: BUCKETS, registers });
  const staleAnswers = new Counter({ ...METRICS.staleAnswers, registers });
  const internalErrors = new Counter({ ...METRICS.internalErrors, registers });
  return {
    countInternalError: (): void => {
      internalErrors.inc();
    },
    registerFlush: (flush: () => void): void => {
      flushes.push(flush);
    },
    countRequest: ({ family, result, status, ms, count = 1 }: RequestSample): void => {
      requests.inc({ family, result, status }, count);
      if (ms !== undefined) seconds.observe({ family }, ms / 1000);
    },
    countStale: (reason: string): void => {
      staleAnswers.inc({ reason });
    },
  };
}

function createUpstreamMetrics(registry: Registry) {
  const registers = [registry];
  const requests = new Counter({ ...METRICS.upstreamRequests, registers });
  const seconds = new Histogram({ ...METRICS.upstreamSeconds, buckets: BUCKETS, registers });
  const breakerOpen = new Gauge({ ...METRICS.breakerOpen, registers, aggregator: 'max' });
  const rejected = new Counter({ ...METRICS.rejected, registers });
  const readers: (() => readonly LimitUsage[])[] = [];
  const use = (): LimitUsage[] => readers.flatMap((read) => read());
  addGauge(registry, METRICS.upstreamRunning, () => use().map(({ kind, running }) => [{ kind }, running]));
  addGauge(registry, METRICS.upstreamWaiting, () => use().map(({ kind, waiting }) => [{ kind }, waiting]));
  return {
    countUpstreamRequest: ({ outcome, ms }: { outcome: string; ms: number }): void => {
      requests.inc({ outcome });
      seconds.observe(ms / 1000);
    },
    setBreakerState: (state: string, server: string): void => {
      breakerOpen.set({ server }, state === 'open' ? 1 : 0);
    },
    countRejected: (kind: string): void => {
      rejected.inc({ kind });
    },
    registerLimitUsage: (read: () => readonly LimitUsage[]): void => {
      readers.push(read);
    },
  };
}

function createCacheMetrics(registry: Registry) {
  const registers = [registry];
  const readers: (() => readonly StoreUsage[])[] = [];
  const usage = (): StoreUsage[] => readers.flatMap((read) => read());
  addGauge(registry, METRICS.cacheEntries, () => usage().map(({ store, entries }) => [{ store }, entries]));
  addGauge(registry, METRICS.cacheBytes, () => usage().map(({ store, bytes }) => [{ store }, bytes]));
  const evictions = new Counter({ ...METRICS.cacheEvictions, registers });
  const redisErrors = new Counter({ ...METRICS.redisErrors, registers });
  const redisUp = new Gauge({ ...METRICS.redisUp, registers, aggregator: 'min' });
  return {
    countEviction: (store: string): void => {
      evictions.inc({ store });
    },
    registerStoreUsage: (read: () => readonly StoreUsage[]): void => {
      readers.push(read);
    },
    countRedisError: (command: string): void => {
      redisErrors.inc({ command });
    },
    setRedisState: (state: 'up' | 'lost'): void => {
      redisUp.set(state === 'up' ? 1 : 0);
    },
  };
}

function createServerMetrics(registry: Registry) {
  const registers = [registry];
  const rateLimited = new Counter({ ...METRICS.rateLimited, registers });
  const connectionsDropped = new Counter({ ...METRICS.connectionsDropped, registers });
  let readDelayMs = (): number => 0;
  new Gauge({
    ...METRICS.eventLoopDelay,
    registers,
    aggregator: 'max',
    collect() {
      this.set(readDelayMs() / 1000);
    },
  });
  return {
    countRateLimited: (): void => {
      rateLimited.inc();
    },
    countDroppedConnection: (): void => {
      connectionsDropped.inc();
    },
    registerEventLoopDelay: (readMs: () => number): void => {
      readDelayMs = readMs;
    },
  };
}
