// The metrics of one process. compose connects the callbacks of other modules to these functions.
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { CATALOGUE } from '../errors.js';
import type { LabelValue } from './label-values.js';
import { METRICS, type MetricEntry } from './metric-list.js';
import { Recent } from './recent.js';
import { RequestSeconds } from './request-seconds.js';
import { addCounter, addGauge, addHistogram, zeroCounter, zeroHistogram } from './series.js';

interface RequestSample {
  /** The interface. */
  family: LabelValue<'family'>;
  handle?: string | undefined;
  result: string;
  status: number;
  ms: number;
  /** Of HTTP. */
  path?: string;
  /** Of an error. */
  code?: string | undefined;
}

/** Hits that were measured, or that take the duration of one that was. */
export interface MeasuredHits {
  family: LabelValue<'family'>;
  handle: string;
  ms: number;
  /** Number of hits. */
  weight: number;
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
  countHits(hits: { family: LabelValue<'family'>; status: number; count: number }): void;
  observeHits(hits: MeasuredHits): void;
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
  readonly recent: Recent;
}

/** Default gauges of prom-client with a counter suffix, which promtool rejects; others report the same by type. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/** Each call has its own registry, so that two proxies in one process (tests) do not mix. */
export function createMetrics(now: () => number = Date.now): Metrics {
  const registry = new Registry();
  const recent = new Recent(now);
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return {
    ...createRequestMetrics(registry, recent),
    ...createUpstreamMetrics(registry, recent),
    ...createCacheMetrics(registry, recent),
    ...createServerMetrics(registry),
    ...createTrafficMetrics(registry),
    exposition: () => registry.metrics(),
    registry,
    recent,
    contentType: registry.contentType,
  };
}

function createRequestMetrics(registry: Registry, recent: Recent) {
  const flushes: (() => void)[] = [];
  const requests = addCounter(registry, METRICS.requests, () => {
    for (const flush of flushes) flush();
  });
  const seconds = new RequestSeconds();
  seconds.register(registry);
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
    countRequest: ({ family, handle, result, status, ms, path, code }: RequestSample): void => {
      requests.inc({ family, result, status });
      seconds.add(family, result, ms / 1000);
      if (handle !== undefined) recent.countHandle(handle, result);
      // The Handle server's own 5xx is passed on with another result; of TCP and UDP the status is a response code.
      const isFailure = result === 'error' || (path !== undefined && status >= 500);
      if (isFailure) recent.addError(`${code ?? status} for ${handle ?? path ?? family}`);
    },
    countHits: ({ family, status, count }: Parameters<Metrics['countHits']>[0]): void => {
      requests.inc({ family, result: 'hit', status }, count);
    },
    observeHits: ({ family, handle, ms, weight }: MeasuredHits): void => {
      seconds.add(family, 'hit', ms / 1000, weight);
      recent.countHandle(handle, 'hit', weight);
    },
    countStale: (reason: LabelValue<'reason'>): void => {
      staleAnswers.inc({ reason });
    },
  };
}

function createUpstreamMetrics(registry: Registry, recent: Recent) {
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
      if (outcome in CATALOGUE) recent.addError(`upstream request failed: ${outcome}`);
    },
    setBreakerState: (state: string, server: string): void => {
      if (state === 'open') recent.addError(`circuit breaker open: ${server}`);
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

function createCacheMetrics(registry: Registry, recent: Recent) {
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
      if (state === 'lost') recent.addError('redis unavailable');
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
