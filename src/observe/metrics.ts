// Creates the process's metrics, which every module updates through its `Context`, and measures the process.
import { type Metric, Registry, collectDefaultMetrics } from 'prom-client';
import { CATALOGUE } from '../errors.js';
import { type LabelValue, type Labels, METRICS, type MetricEntry } from './metric-list.js';
import { Recent } from './recent.js';
import {
  type HistogramSeries,
  type LabelledValue,
  type Series,
  addGauges,
  createHistogram,
  createValues,
  labelValues,
} from './series.js';

interface RequestSample {
  interface: LabelValue<'interface'>;
  handle?: string | undefined;
  result: string;
  status: number;
  ms: number;
  /** Path of an HTTP request; undefined for native TCP and UDP. */
  path?: string;
  /** Code of an error response. */
  code?: string | undefined;
}

/** A timed hit, which also represents the untimed hits before it. */
export interface MeasuredHits {
  interface: LabelValue<'interface'>;
  handle: string;
  ms: number;
  /** Number of hits that the duration counts for. */
  weight: number;
}

export interface StoreUsage {
  store: string;
  entries: number;
  bytes: number;
}

/** Usage of a Handle server's concurrency limit. */
interface LimitUsage {
  server: string;
  /** `read` or `forwarded`. */
  kind: string;
  running: number;
  waiting: number;
  limit: number;
}

export type Metrics = ReturnType<typeof createMetrics>;

/** Creates metrics with a separate registry, so that several proxies can run in one test process. */
export function createMetrics(now: () => number = Date.now) {
  const registry = new Registry();
  const recent = new Recent(now);
  registerProcessMetrics(registry);
  return {
    ...createRequestMetrics(registry, recent),
    ...createUpstreamMetrics(registry, recent),
    ...createPluginMetrics(registry),
    ...createCounters(registry),
    ...createGauges(registry, recent),
    /** Returns the text that Prometheus scrapes. */
    exposition: () => registry.metrics(),
    contentType: registry.contentType,
    registry,
    recent,
  };
}

function createRequestMetrics(registry: Registry, recent: Recent) {
  const requests = createValues(registry, METRICS.requests);
  const seconds = createHistogram(registry, METRICS.requestDuration);
  return {
    countRequest({ interface: family, handle, result, status, ms, path, code }: RequestSample): void {
      requests.of([family, result, status]).value++;
      seconds.observe([family, result], ms / 1000);
      if (handle !== undefined) recent.countHandle(handle, result);
      // A forwarded upstream 5xx does not have the result `error`. Over native TCP and UDP, the status is a
      // response code, and the path is undefined.
      const isFailure = result === 'error' || (path !== undefined && status >= 500);
      if (isFailure) recent.addError(`${code ?? status} for ${handle ?? path ?? family}`);
    },
    /** Returns the count of hits, to which each hit adds. */
    hitsOf: (family: LabelValue<'interface'>, status: number): { value: number } =>
      requests.of([family, 'hit', status]),
    observeHits({ interface: family, handle, ms, weight }: MeasuredHits): void {
      seconds.observe([family, 'hit'], ms / 1000, weight);
      recent.countHandle(handle, 'hit', weight);
    },
  };
}

function createUpstreamMetrics(registry: Registry, recent: Recent) {
  const requests = createValues(registry, METRICS.upstreamRequests);
  const rejected = createValues(registry, METRICS.rejected);
  const breakerOpen = createValues(registry, METRICS.breakerOpen);
  const seconds = createHistogram(registry, METRICS.upstreamRequestDuration);
  return {
    /** Initialises the series of a Handle server or secondary to 0. */
    addServer(server: string): void {
      for (const each of [requests, rejected, seconds]) each.begin({ server });
    },
    countUpstreamRequest({ server, outcome, ms }: { server: string; outcome: string; ms: number }): void {
      requests.of([server, outcome]).value++;
      seconds.observe([server], ms / 1000);
      if (outcome in CATALOGUE) recent.addError(`upstream request failed: ${outcome}`);
    },
    setBreakerState(state: string, server: string): void {
      if (state === 'open') recent.addError(`circuit breaker open: ${server}`);
      breakerOpen.of([server]).value = state === 'open' ? 1 : 0;
    },
    countRejected({ server, kind }: { server: string; kind: LabelValue<'kind'> }): void {
      rejected.of([server, kind]).value++;
    },
  };
}

/** The label values of a metric with one label. */
type OnlyLabel<M> = M extends { labelNames: readonly [infer Label]; fromStart: readonly (infer Series)[] }
  ? Series[Label & keyof Series]
  : never;

/** Creates the counters with at most one label. */
function createCounters(registry: Registry) {
  const counts = (metric: MetricEntry): (() => void) => {
    const series = createValues(registry, metric).of([]);
    return () => {
      series.value++;
    };
  };
  const countsBy = <M extends MetricEntry>(metric: M) => {
    const counter = createValues(registry, metric);
    return (value: OnlyLabel<M>, count = 1): void => {
      counter.of([String(value)]).value += count;
    };
  };
  return {
    countInternalError: counts(METRICS.internalErrors),
    countStale: countsBy(METRICS.staleResponses),
    countEviction: countsBy(METRICS.cacheEvictions),
    countRedisError: countsBy(METRICS.redisErrors),
    countDroppedConnection: countsBy(METRICS.connectionsDropped),
    countIdleClosed: counts(METRICS.idleConnectionsClosed),
    countDroppedTelemetry: countsBy(METRICS.telemetryDropped),
  };
}

/** Gauges that are set, and gauges that are read at each scrape by registered functions. */
function createGauges(registry: Registry, recent: Recent) {
  const certificateExpiry = createValues(registry, METRICS.certificateExpiry);
  // Without a configured Redis nothing sets it, so that the series is absent, and no alert fires.
  const redisUp = createValues(registry, METRICS.redisUp);
  const limitOf = (field: 'running' | 'waiting' | 'limit') => (use: LimitUsage) => ({
    labels: { server: use.server, kind: use.kind },
    value: use[field],
  });
  return {
    /** `expires` is in ISO 8601 format. */
    setCertificateExpiry(server: string, expires: string): void {
      certificateExpiry.of([server]).value = Date.parse(expires) / 1000;
    },
    /** `down` is the state before the first connection. */
    setRedisState(state: 'down' | 'up' | 'lost'): void {
      redisUp.of([]).value = state === 'up' ? 1 : 0;
      if (state === 'lost') recent.addError('redis unavailable');
    },
    registerStoreUsage: addGauges(registry, [
      [METRICS.cacheEntries, ({ store, entries }: StoreUsage) => ({ labels: { store }, value: entries })],
      [METRICS.cacheBytes, ({ store, bytes }: StoreUsage) => ({ labels: { store }, value: bytes })],
    ]),
    registerLimitUsage: addGauges(registry, [
      [METRICS.upstreamInFlight, limitOf('running')],
      [METRICS.upstreamQueued, limitOf('waiting')],
      [METRICS.upstreamConcurrencyLimit, limitOf('limit')],
    ]),
    registerEventLoopDelay: addGauges(registry, [
      [METRICS.eventLoopDelay, (ms: number) => ({ labels: {}, value: ms / 1000 })],
    ]),
  };
}

/** Creates the metrics that plugins declare; their series begin at 0 also while a plugin is off. */
function createPluginMetrics(registry: Registry) {
  const counters = new Map<string, Series<LabelledValue>>();
  const histograms = new Map<string, HistogramSeries>();
  const gauges = new Map<string, () => readonly LabelledValue[]>();
  function add(metric: MetricEntry): void {
    const { name, type } = metric;
    if (type === 'counter') counters.set(name, createValues(registry, metric));
    else if (type === 'histogram') histograms.set(name, createHistogram(registry, metric));
    else
      addGauges(registry, [[metric, (reading: LabelledValue) => reading]])(() => gauges.get(name)?.() ?? []);
  }
  return {
    /** Adds metrics that do not exist yet. */
    add(metrics: Iterable<MetricEntry>): void {
      for (const metric of metrics) if (registry.getSingleMetric(metric.name) === undefined) add(metric);
    },
    counterOf:
      (metric: MetricEntry) =>
      (labels: Labels, count = 1): void => {
        const counter = counters.get(metric.name);
        if (counter !== undefined) counter.of(labelValues(metric, labels)).value += count;
      },
    histogramOf:
      ({ name }: MetricEntry) =>
      (value: number): void =>
        histograms.get(name)?.observe([], value),
    /** Registers the source of a gauge, which is read at each scrape. */
    readGauge({ name }: MetricEntry, read: () => readonly LabelledValue[]): void {
      gauges.set(name, read);
    },
  };
}

/**
 * Default prom-client gauges whose names end like a counter's, which promtool rejects; other default gauges
 * report the same numbers by type.
 */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

let shared: Registry | undefined;

function collectOnce(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return registry;
}

/**
 * Registers the metrics of the process. All registries share them, because each set runs a timer and observes
 * every garbage collection until the process ends.
 */
function registerProcessMetrics(registry: Registry): void {
  shared ??= collectOnce();
  for (const { name } of shared.getMetricsAsArray()) {
    registry.registerMetric(shared.getSingleMetric(name) as Metric);
  }
}
