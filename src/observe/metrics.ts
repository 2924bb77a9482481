// Keeps the metrics. Other rooms report through callbacks; app.ts ties those to these verbs.
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type LoadMetrics, loadMetrics } from './load-metrics.js';
import { METRICS } from './metric-list.js';

export interface RequestAnswered {
  /** Which interface was asked: `record` or `v2`. */
  family: string;
  result: string;
  status: number;
  /** Left out for answers that took no time worth measuring. */
  ms?: number;
  /** How many such requests; one when left out. */
  count?: number;
}

export interface StoreUsage {
  store: string;
  entries: number;
  bytes: number;
}

export interface Metrics extends LoadMetrics {
  requestAnswered(request: RequestAnswered): void;
  /** The proxy itself has failed. */
  internalError(): void;
  /** `flush` is called before each scrape: for those who count by themselves, being asked too often. */
  beforeCollect(flush: () => void): void;
  upstreamAnswered(answer: { outcome: string; ms: number }): void;
  entryEvicted(store: string): void;
  staleAnswered(reason: string): void;
  /** Anything but `open` lets questions through. */
  breakerIs(state: string, server: string): void;
  redisFailed(command: string): void;
  redisIs(state: 'up' | 'lost'): void;
  /** `read` is called at each scrape. */
  onCollect(read: () => readonly StoreUsage[]): void;
  /** The text a Prometheus server reads. */
  exposition(): Promise<string>;
  readonly contentType: string;
  readonly registry: Registry;
}

/** Seconds, from a neighbour's quick answer to the longest wait that is allowed by default. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Gauges of prom-client with the ending of a counter, which promtool refuses; others say the same by type. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/** Metrics in a registry of their own, so that two proxies in one process do not mix; those of the process too. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return {
    ...requestMetrics(registry),
    ...upstreamMetrics(registry),
    ...cacheMetrics(registry),
    ...redisMetrics(registry),
    ...loadMetrics(registry),
    exposition: () => registry.metrics(),
    registry,
    contentType: registry.contentType,
  };
}

function requestMetrics(registry: Registry) {
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
    internalError(): void {
      internalErrors.inc();
    },
    beforeCollect(flush: () => void): void {
      flushes.push(flush);
    },
    requestAnswered({ family, result, status, ms, count = 1 }: RequestAnswered): void {
      requests.inc({ family, result, status }, count);
      if (ms !== undefined) seconds.observe({ family }, ms / 1000);
    },
    staleAnswered(reason: string): void {
      staleAnswers.inc({ reason });
    },
  };
}

function upstreamMetrics(registry: Registry) {
  const registers = [registry];
  const requests = new Counter({ ...METRICS.upstreamRequests, registers });
  const seconds = new Histogram({ ...METRICS.upstreamSeconds, buckets: BUCKETS, registers });
  const breakerOpen = new Gauge({ ...METRICS.breakerOpen, registers, aggregator: 'max' });
  return {
    upstreamAnswered({ outcome, ms }: { outcome: string; ms: number }): void {
      requests.inc({ outcome });
      seconds.observe(ms / 1000);
    },
    breakerIs(state: string, server: string): void {
      breakerOpen.set({ server }, state === 'open' ? 1 : 0);
    },
  };
}

function cacheMetrics(registry: Registry) {
  const readers: (() => readonly StoreUsage[])[] = [];
  const usage = (): StoreUsage[] => readers.flatMap((read) => read());
  new Gauge({
    ...METRICS.cacheEntries,
    registers: [registry],
    collect() {
      for (const { store, entries } of usage()) this.set({ store }, entries);
    },
  });
  new Gauge({
    ...METRICS.cacheBytes,
    registers: [registry],
    collect() {
      for (const { store, bytes } of usage()) this.set({ store }, bytes);
    },
  });
  const evictions = new Counter({ ...METRICS.cacheEvictions, registers: [registry] });
  return {
    entryEvicted(store: string): void {
      evictions.inc({ store });
    },
    onCollect(read: () => readonly StoreUsage[]): void {
      readers.push(read);
    },
  };
}

function redisMetrics(registry: Registry) {
  const errors = new Counter({ ...METRICS.redisErrors, registers: [registry] });
  const up = new Gauge({ ...METRICS.redisUp, registers: [registry], aggregator: 'min' });
  return {
    redisFailed(command: string): void {
      errors.inc({ command });
    },
    redisIs(state: 'up' | 'lost'): void {
      up.set(state === 'up' ? 1 : 0);
    },
  };
}
