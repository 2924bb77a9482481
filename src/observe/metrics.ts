// The metrics of one process. compose connects the callbacks of other modules to these functions.
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { LabelValue } from './label-values.js';
import { METRICS, type MetricEntry } from './metric-list.js';
import { addCounter, addGauge, addHistogram, zeroCounter, zeroHistogram } from './series.js';

export interface RequestSample {
  /** The interface. */
  family: LabelValue<'family'>;
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

/** Use of a concurrency limit of a Handle server. */
export interface LimitUsage {
  server: string;
  /** `read` or `passed`. */
  kind: string;
  running: number;
  waiting: number;
  limit: number;
}

export interface Metrics {
  countRequest(request: RequestSample): void;
  /** A handle that was answered in a batch. */
  countBatchHandle: (result: string) => void;
  countInternalError(): void;
  /** `flush` is called before each scrape, for callers that count by themselves. */
  registerFlush(flush: () => void): void;
  /** A Handle server or mirror that will be counted: its series are 0 from now on. */
  addServer(server: string): void;
  countUpstreamRequest(answer: { server: string; outcome: string; ms: number }): void;
  setBreakerState(state: string, server: string): void;
  countEviction(store: LabelValue<'store'>): void;
  setSnapshotWritten: (now: number) => void;
  countRestored: (source: LabelValue<'source'>, records: number) => void;
  countStale: (reason: LabelValue<'reason'>) => void;
  countRedisError(command: LabelValue<'command'>): void;
  setRedisState(state: 'up' | 'lost'): void;
  countRejected(labels: { server: string; kind: LabelValue<'kind'> }): void;
  countDroppedConnection: (reason: LabelValue<'dropReason'>) => void;
  countIdleClosed: () => void;
  countUdpLimited: (reason: LabelValue<'udpReason'>) => void;
  /** A traffic rule that will be counted: its series are 0 from now on. */
  addTrafficRule(rule: string): void;
  countTrafficRule(rule: string, result: LabelValue<'ruleResult'>): void;
  countLimitedMiss: (reason: LabelValue<'limitReason'>) => void;
  /** These read their values at each scrape. */
  registerStoreUsage(read: () => readonly StoreUsage[]): void;
  registerLimitUsage(read: () => readonly LimitUsage[]): void;
  registerEventLoopDelay(readMs: () => number): void;
  registerLimitedNetworks(read: () => number): void;
  /** The text that Prometheus scrapes. */
  exposition(): Promise<string>;
  readonly contentType: string;
  readonly registry: Registry;
}

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
    ...createTrafficMetrics(registry),
    exposition: () => registry.metrics(),
    registry,
    contentType: registry.contentType,
  };
}

function createRequestMetrics(registry: Registry) {
  const flushes: (() => void)[] = [];
  const requests = addCounter(registry, METRICS.requests, () => {
    for (const flush of flushes) flush();
  });
  const seconds = addHistogram(registry, METRICS.requestSeconds);
  const staleAnswers = addCounter(registry, METRICS.staleAnswers);
  const internalErrors = addCounter(registry, METRICS.internalErrors);
  const batchHandles = addCounter(registry, METRICS.batchHandles);
  return {
    countBatchHandle: (result: string): void => {
      batchHandles.inc({ result });
    },
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
    countStale: (reason: LabelValue<'reason'>): void => {
      staleAnswers.inc({ reason });
    },
  };
}

function createUpstreamMetrics(registry: Registry) {
  const registers = [registry];
  const requests = addCounter(registry, METRICS.upstreamRequests);
  const seconds = addHistogram(registry, METRICS.upstreamSeconds);
  const breakerOpen = new Gauge({ ...METRICS.breakerOpen, registers });
  const rejected = addCounter(registry, METRICS.rejected);
  const readers: (() => readonly LimitUsage[])[] = [];
  const use = (): LimitUsage[] => readers.flatMap((read) => read());
  const gaugeUse = (metric: MetricEntry, field: 'running' | 'waiting' | 'limit'): void => {
    addGauge(registry, metric, () => use().map((of) => [{ server: of.server, kind: of.kind }, of[field]]));
  };
  gaugeUse(METRICS.upstreamRunning, 'running');
  gaugeUse(METRICS.upstreamWaiting, 'waiting');
  gaugeUse(METRICS.upstreamLimit, 'limit');
  return {
    addServer: (server: string): void => {
      zeroCounter(requests, METRICS.upstreamRequests, { server });
      zeroCounter(rejected, METRICS.rejected, { server });
      zeroHistogram(seconds, METRICS.upstreamSeconds, { server });
    },
    countUpstreamRequest: ({ server, outcome, ms }: Parameters<Metrics['countUpstreamRequest']>[0]): void => {
      requests.inc({ server, outcome });
      seconds.observe({ server }, ms / 1000);
    },
    setBreakerState: (state: string, server: string): void => {
      breakerOpen.set({ server }, state === 'open' ? 1 : 0);
    },
    countRejected: (labels: Parameters<Metrics['countRejected']>[0]): void => {
      rejected.inc(labels);
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
  const evictions = addCounter(registry, METRICS.cacheEvictions);
  const snapshotWritten = new Gauge({ ...METRICS.snapshotWritten, registers });
  const restored = addCounter(registry, METRICS.restored);
  const redisErrors = addCounter(registry, METRICS.redisErrors);
  const redisUp = new Gauge({ ...METRICS.redisUp, registers });
  return {
    countEviction: (store: LabelValue<'store'>): void => {
      evictions.inc({ store });
    },
    setSnapshotWritten: (now: number): void => {
      snapshotWritten.set(Math.round(now / 1000));
    },
    countRestored: (source: LabelValue<'source'>, records: number): void => {
      restored.inc({ source }, records);
    },
    registerStoreUsage: (read: () => readonly StoreUsage[]): void => {
      readers.push(read);
    },
    countRedisError: (command: LabelValue<'command'>): void => {
      redisErrors.inc({ command });
    },
    setRedisState: (state: 'up' | 'lost'): void => {
      redisUp.set(state === 'up' ? 1 : 0);
    },
  };
}

function createServerMetrics(registry: Registry) {
  const registers = [registry];
  const connectionsDropped = addCounter(registry, METRICS.connectionsDropped);
  const idleClosed = addCounter(registry, METRICS.idleConnectionsClosed);
  const udpLimited = addCounter(registry, METRICS.udpLimited);
  let readDelayMs = (): number => 0;
  new Gauge({
    ...METRICS.eventLoopDelay,
    registers,
    collect() {
      this.set(readDelayMs() / 1000);
    },
  });
  return {
    countUdpLimited: (reason: LabelValue<'udpReason'>): void => {
      udpLimited.inc({ reason });
    },
    countDroppedConnection: (reason: LabelValue<'dropReason'>): void => {
      connectionsDropped.inc({ reason });
    },
    countIdleClosed: (): void => {
      idleClosed.inc();
    },
    registerEventLoopDelay: (readMs: () => number): void => {
      readDelayMs = readMs;
    },
  };
}

function createTrafficMetrics(registry: Registry) {
  const ruleRequests = addCounter(registry, METRICS.trafficRules);
  const limitedMisses = addCounter(registry, METRICS.limitedMisses);
  let readLimited = (): number => 0;
  new Gauge({
    ...METRICS.limitedNetworks,
    registers: [registry],
    collect() {
      this.set(readLimited());
    },
  });
  return {
    addTrafficRule: (rule: string): void => {
      zeroCounter(ruleRequests, METRICS.trafficRules, { rule });
    },
    countTrafficRule: (rule: string, result: LabelValue<'ruleResult'>): void => {
      ruleRequests.inc({ rule, result });
    },
    countLimitedMiss: (reason: LabelValue<'limitReason'>): void => {
      limitedMisses.inc({ reason });
    },
    registerLimitedNetworks: (read: () => number): void => {
      readLimited = read;
    },
  };
}
