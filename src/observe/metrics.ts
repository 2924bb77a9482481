// Creates the process's metrics, which every module updates through its `Context`, and measures the process.
import { Counter, Gauge, Histogram, Registry, type Metric, collectDefaultMetrics } from 'prom-client';
import { CATALOGUE } from '../errors.js';
import { type LabelValue, type Labels, METRICS, type MetricEntry } from './metric-list.js';
import { Recent } from './recent.js';

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
  const flushes: (() => void)[] = [];
  const requests = addBufferedCounter(registry, METRICS.requests, () => {
    for (const flush of flushes) flush();
  });
  const seconds = new Seconds(METRICS.requestDuration, REQUEST_BUCKETS);
  seconds.register(registry);
  return {
    /** Registers a function to call before each scrape, for callers that buffer counts. */
    registerFlush(flush: () => void): void {
      flushes.push(flush);
    },
    countRequest({ interface: family, handle, result, status, ms, path, code }: RequestSample): void {
      requests.add([family, result, status]);
      seconds.add([family, result], ms / 1000);
      if (handle !== undefined) recent.countHandle(handle, result);
      // A forwarded upstream 5xx does not have the result `error`. Over native TCP and UDP, the status is a
      // response code, and the path is undefined.
      const isFailure = result === 'error' || (path !== undefined && status >= 500);
      if (isFailure) recent.addError(`${code ?? status} for ${handle ?? path ?? family}`);
    },
    countHits({
      interface: family,
      status,
      count,
    }: {
      interface: LabelValue<'interface'>;
      status: number;
      count: number;
    }): void {
      requests.add([family, 'hit', status], count);
    },
    observeHits({ interface: family, handle, ms, weight }: MeasuredHits): void {
      seconds.add([family, 'hit'], ms / 1000, weight);
      recent.countHandle(handle, 'hit', weight);
    },
  };
}

function createUpstreamMetrics(registry: Registry, recent: Recent) {
  const requests = addBufferedCounter(registry, METRICS.upstreamRequests);
  const rejected = addCounter(registry, METRICS.rejected);
  const breakerOpen = new Gauge({ ...METRICS.breakerOpen, registers: [registry] });
  const seconds = new Seconds(METRICS.upstreamRequestDuration, UPSTREAM_BUCKETS);
  seconds.register(registry);
  return {
    /** Initialises the series of a Handle server or secondary to 0. */
    addServer(server: string): void {
      zeroCounter(requests.counter, METRICS.upstreamRequests, { server });
      zeroCounter(rejected, METRICS.rejected, { server });
      seconds.add([server], 0, 0);
    },
    countUpstreamRequest({ server, outcome, ms }: { server: string; outcome: string; ms: number }): void {
      requests.add([server, outcome]);
      seconds.add([server], ms / 1000);
      if (outcome in CATALOGUE) recent.addError(`upstream request failed: ${outcome}`);
    },
    setBreakerState(state: string, server: string): void {
      if (state === 'open') recent.addError(`circuit breaker open: ${server}`);
      breakerOpen.set({ server }, state === 'open' ? 1 : 0);
    },
    countRejected(labels: { server: string; kind: LabelValue<'kind'> }): void {
      rejected.inc(labels);
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
    const counter = addCounter(registry, metric);
    return () => {
      counter.inc();
    };
  };
  const countsBy = <M extends MetricEntry>(metric: M) => {
    const counter = addCounter(registry, metric);
    const [label = ''] = metric.labelNames;
    return (value: OnlyLabel<M>, count = 1): void => {
      counter.inc({ [label]: String(value) }, count);
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
  const registers = [registry];
  const certificateExpiry = new Gauge({ ...METRICS.certificateExpiry, registers });
  const redisUp = new Gauge({ ...METRICS.redisUp, registers });
  // Removes the initial 0: without a configured Redis the series is absent, and no alert fires.
  redisUp.remove();
  const limitOf = (field: 'running' | 'waiting' | 'limit') => (use: LimitUsage) => ({
    labels: { server: use.server, kind: use.kind },
    value: use[field],
  });
  return {
    /** `expires` is in ISO 8601 format. */
    setCertificateExpiry(server: string, expires: string): void {
      certificateExpiry.set({ server }, Date.parse(expires) / 1000);
    },
    /** `down` is the state before the first connection. */
    setRedisState(state: 'down' | 'up' | 'lost'): void {
      redisUp.set(state === 'up' ? 1 : 0);
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
  const counters = new Map<string, Counter>();
  const histograms = new Map<string, Histogram>();
  const gauges = new Map<string, () => readonly LabelledValue[]>();
  const registers = [registry];
  function add(metric: MetricEntry): void {
    const { name, type, buckets = [] } = metric;
    if (type === 'counter') counters.set(name, addCounter(registry, metric));
    else if (type === 'histogram')
      histograms.set(name, new Histogram({ ...metric, registers, buckets: [...buckets] }));
    else
      addGauges(registry, [[metric, (reading: LabelledValue) => reading]])(() => gauges.get(name)?.() ?? []);
  }
  return {
    /** Adds metrics that do not exist yet. */
    add(metrics: Iterable<MetricEntry>): void {
      for (const metric of metrics) if (registry.getSingleMetric(metric.name) === undefined) add(metric);
    },
    counterOf:
      ({ name }: MetricEntry) =>
      (labels: Labels, count = 1): void =>
        counters.get(name)?.inc(labels, count),
    histogramOf:
      ({ name }: MetricEntry) =>
      (value: number): void =>
        histograms.get(name)?.observe(value),
    /** Registers the source of a gauge, which is read at each scrape. */
    readGauge({ name }: MetricEntry, read: () => readonly LabelledValue[]): void {
      gauges.set(name, read);
    },
  };
}

interface LabelledValue {
  labels: Labels;
  value: number;
}

type GaugeOf<T> = readonly [metric: MetricEntry, read: (from: T) => LabelledValue];

/**
 * Returns a function that registers the source of the gauges. At each scrape, every source item sets each
 * gauge.
 */
function addGauges<T>(registry: Registry, gauges: readonly GaugeOf<T>[]) {
  let readAll = (): readonly T[] => [];
  for (const [metric, read] of gauges) {
    new Gauge({
      ...metric,
      registers: [registry],
      collect() {
        for (const { labels, value } of readAll().map(read)) this.set(labels, value);
      },
    });
  }
  return (reader: () => readonly T[]): void => {
    readAll = reader;
  };
}

/** Adds a counter and initialises its series to 0, unless they depend on servers, not known yet. */
function addCounter(registry: Registry, metric: MetricEntry, collect: () => void = () => undefined): Counter {
  const counter = new Counter({ ...metric, registers: [registry], collect });
  if (!metric.labelNames.includes('server')) zeroCounter(counter, metric);
  return counter;
}

/** `more` contains labels whose values depend on the deployment. */
function zeroCounter(counter: Counter, { fromStart = [] }: MetricEntry, more: Labels = {}): void {
  for (const labels of fromStart) counter.inc({ ...more, ...labels }, 0);
}

/** Bucket bounds (s), from a fast upstream in the same network to the default `upstream.timeout`. */
const UPSTREAM_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Bucket bounds (s), from a hit to the default `upstream.timeout`. */
const REQUEST_BUCKETS = [
  ...[0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01],
  ...[0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];

/** Label values in the order of the label names. */
type LabelValues = readonly (string | number)[];

/** Counts by label values; each scrape adds the counts to the counter, which sorts and joins labels at each `inc`. */
class BufferedCounter {
  readonly counter: Counter;
  readonly #labelNames: readonly string[];
  #counts = new Map<string, { values: LabelValues; count: number }>();

  constructor(counter: Counter, { labelNames }: MetricEntry) {
    this.counter = counter;
    this.#labelNames = labelNames;
  }

  add(values: LabelValues, count = 1): void {
    const known = this.#counts.get(values.join(' '));
    if (known === undefined) this.#counts.set(values.join(' '), { values, count });
    else known.count += count;
  }

  flush(): void {
    for (const { values, count } of this.#counts.values())
      this.counter.inc(labelsOf(this.#labelNames, values), count);
    this.#counts.clear();
  }
}

function addBufferedCounter(registry: Registry, metric: MetricEntry, collect: () => void = () => undefined) {
  const buffered: BufferedCounter = new BufferedCounter(
    addCounter(registry, metric, () => {
      collect();
      buffered.flush();
    }),
    metric,
  );
  return buffered;
}

const labelsOf = (names: readonly string[], values: LabelValues): Labels =>
  Object.fromEntries(names.map((name, at) => [name, String(values[at])]));

interface Series {
  labels: Labels;
  /** Counts per bucket; the last bucket is `+Inf`. */
  counts: number[];
  sum: number;
}

/** A histogram of durations with weighted observations, which prom-client does not support. */
class Seconds {
  readonly #metric: MetricEntry;
  readonly #buckets: readonly number[];
  readonly #series = new Map<string, Series>();

  constructor(metric: MetricEntry, buckets: readonly number[]) {
    this.#metric = metric;
    this.#buckets = buckets;
  }

  add(values: LabelValues, seconds: number, weight = 1): void {
    const series = this.#seriesOf(values);
    let bucket = 0;
    while (seconds > (this.#buckets[bucket] ?? Infinity)) bucket++;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + weight;
    series.sum += seconds * weight;
  }

  register(registry: Registry): void {
    const { name, help, type, labelNames, fromStart = [] } = this.#metric;
    // The servers are not known yet.
    const known = labelNames.includes('server') ? [] : fromStart;
    for (const labels of known) this.#seriesOf(labelNames.map((label) => labels[label] ?? ''));
    const get = () =>
      Promise.resolve({
        name,
        help,
        type,
        values: [...this.#series.values()].flatMap((each) => this.#valuesOf(each)),
      });
    // The registry uses only these two members.
    registry.registerMetric({ name, get } as unknown as Histogram);
  }

  #seriesOf(values: LabelValues): Series {
    const key = values.join(' ');
    let series = this.#series.get(key);
    if (series === undefined) {
      const counts = new Array<number>(this.#buckets.length + 1).fill(0);
      series = { labels: labelsOf(this.#metric.labelNames, values), counts, sum: 0 };
      this.#series.set(key, series);
    }
    return series;
  }

  /** Returns the samples of a series; buckets are cumulative. */
  #valuesOf({ labels, counts, sum }: Series) {
    const { name } = this.#metric;
    let count = 0;
    const buckets = counts.map((added, at) => {
      count += added;
      return {
        metricName: `${name}_bucket`,
        labels: { le: this.#buckets[at] ?? '+Inf', ...labels },
        value: count,
      };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
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
