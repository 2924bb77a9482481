// Creates the process's metrics, which every module updates through its `Context`, and measures the process.
import { type Metric, Registry, collectDefaultMetrics } from 'prom-client';
import { CATALOGUE } from '../errors.js';
import { type LabelValue, type Labels, METRICS, type MetricEntry } from './metric-list.js';
import { type Recent, createRecent } from './recent.js';
import { type AllSeries, createAllSeries } from './series.js';

interface RequestSample {
  interface: LabelValue<'interface'>;
  handle?: string | undefined;
  result: string;
  status: number;
  ms: number;
  /** Path of an HTTP request; undefined for native TCP and UDP. */
  path?: string;
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
  const recent = createRecent(now);
  registerProcessMetrics(registry);
  const series = createAllSeries(registry);
  const { add, valuesOf, histogramOf, read, readGauge } = series;
  add(Object.values(METRICS));
  return {
    ...createRequestMetrics(series, recent),
    ...createUpstreamMetrics(series, recent),
    ...createCounters(series),
    ...createGauges(series, recent),
    /** Adds the metrics of plugins; their series begin at 0 also while a plugin is off. */
    add,
    counterOf:
      (metric: MetricEntry) =>
      (labels: Labels, count = 1): void => {
        valuesOf(metric).ofLabels(labels).value += count;
      },
    histogramOf:
      (metric: MetricEntry) =>
      (value: number): void =>
        histogramOf(metric).observe([], value),
    readGauge,
    read,
    distributionsOf: (metric: MetricEntry) => histogramOf(metric).all(),
    exposition: () => registry.metrics(),
    contentType: registry.contentType,
    registry,
    recent,
  };
}

function createRequestMetrics({ valuesOf, histogramOf }: AllSeries, recent: Recent) {
  const requests = valuesOf(METRICS.requests);
  const seconds = histogramOf(METRICS.requestDuration);
  return {
    countRequest({ interface: family, handle, result, status, ms, path, code }: RequestSample): void {
      requests.of([family, result, status]).value++;
      seconds.observe([family, result], ms / 1000);
      if (handle !== undefined) recent.countHandle(handle, result);
      // A forwarded 5xx is no `error`. Over native TCP and UDP, the status is a response code, without path.
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

function createUpstreamMetrics({ valuesOf, histogramOf }: AllSeries, recent: Recent) {
  const requests = valuesOf(METRICS.upstreamRequests);
  const rejected = valuesOf(METRICS.rejected);
  const breakerOpen = valuesOf(METRICS.breakerOpen);
  const seconds = histogramOf(METRICS.upstreamRequestDuration);
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

function createCounters({ valuesOf }: AllSeries) {
  const counts = (metric: MetricEntry): (() => void) => {
    const series = valuesOf(metric).of([]);
    return () => {
      series.value++;
    };
  };
  const countsBy = <M extends MetricEntry>(metric: M) => {
    const counter = valuesOf(metric);
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

function createGauges({ valuesOf, readGauge }: AllSeries, recent: Recent) {
  const certificateExpiry = valuesOf(METRICS.certificateExpiry);
  const redisUp = valuesOf(METRICS.redisUp);
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
    registerStoreUsage(read: () => readonly StoreUsage[]): void {
      const readBy = (metric: MetricEntry, name: 'entries' | 'bytes'): void => {
        readGauge(metric, () => read().map(({ store, [name]: value }) => ({ labels: { store }, value })));
      };
      readBy(METRICS.cacheEntries, 'entries');
      readBy(METRICS.cacheBytes, 'bytes');
    },
    registerLimitUsage(read: () => readonly LimitUsage[]): void {
      const readBy = (metric: MetricEntry, name: 'running' | 'waiting' | 'limit'): void => {
        readGauge(metric, () =>
          read().map(({ server, kind, [name]: value }) => ({ labels: { server, kind }, value })),
        );
      };
      readBy(METRICS.upstreamInFlight, 'running');
      readBy(METRICS.upstreamQueued, 'waiting');
      readBy(METRICS.upstreamConcurrencyLimit, 'limit');
    },
  };
}

/** Default gauges with names of counters, which promtool rejects; others report the same numbers. */
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

/** Registers the metrics of the process, which are shared: each set runs a timer, and observes collections. */
function registerProcessMetrics(registry: Registry): void {
  shared ??= collectOnce();
  for (const { name } of shared.getMetricsAsArray())
    registry.registerMetric(shared.getSingleMetric(name) as Metric);
}
