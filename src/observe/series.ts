// Series of metrics that cost little to update, in a registry of prom-client, whose counters sort and join labels at each
// update, and whose histograms have no weights.
import type { Metric, Registry } from 'prom-client';
import type { Labels, MetricEntry } from './metric-list.js';

/** Label values in the order of the label names. */
type LabelValues = readonly (string | number)[];

export interface LabelledValue {
  labels: Labels;
  value: number;
}

/** A value that a scrape reads. */
export interface Reading {
  labels: Partial<Record<string, string | number>>;
  value: number;
  /** Name of a series of a histogram: `…_bucket`, `…_sum` or `…_count`. */
  metricName?: string;
}

/** Adds a metric to the registry. Each scrape calls `read`. */
function publish(registry: Registry, { name, help, type }: MetricEntry, read: () => Reading[]): void {
  const get = () => Promise.resolve({ name, help, type, values: read() });
  // The registry uses only these two members.
  registry.registerMetric({ name, get } as unknown as Metric);
}

/** Returns label values in the order of the label names. */
export const labelValues = ({ labelNames }: MetricEntry, labels: Labels): LabelValues =>
  labelNames.map((name) => labels[name] ?? '');

/** The series of a metric, which begin at 0. */
export class Series<S extends { labels: Labels }> {
  readonly #metric: MetricEntry;
  readonly #zero: () => Omit<S, 'labels'>;
  readonly #series = new Map<string, S>();

  constructor(metric: MetricEntry, zero: () => Omit<S, 'labels'>) {
    this.#metric = metric;
    this.#zero = zero;
    // The series of a gauge depend on what is set, and those of servers on the configuration.
    if (metric.type !== 'gauge' && !metric.labelNames.includes('server')) this.begin();
  }

  of(values: LabelValues): S {
    const key = values.join('\n');
    let series = this.#series.get(key);
    if (series === undefined) {
      const labels = Object.fromEntries(
        this.#metric.labelNames.map((name, at) => [name, String(values[at])]),
      );
      series = { ...this.#zero(), labels } as S;
      this.#series.set(key, series);
    }
    return series;
  }

  /** Begins the series that are known. `more` contains labels whose values depend on the deployment. */
  begin(more: Labels = {}): void {
    const { fromStart = [], labelNames } = this.#metric;
    const known = labelNames.length === 0 ? [{}] : fromStart;
    for (const labels of known) this.of(labelValues(this.#metric, { ...more, ...labels }));
  }

  all(): S[] {
    return [...this.#series.values()];
  }
}

/** Creates a counter, or a gauge that is set. */
export function createValues(registry: Registry, metric: MetricEntry): Series<LabelledValue> {
  const series = new Series<LabelledValue>(metric, () => ({ value: 0 }));
  publish(registry, metric, () => series.all().map((each) => ({ ...each })));
  return series;
}

interface Distribution {
  labels: Labels;
  /** Counts per bucket; the last bucket is `+Inf`. */
  counts: number[];
  sum: number;
}

/** Creates a histogram. */
export function createHistogram(registry: Registry, metric: MetricEntry) {
  const { buckets = [] } = metric;
  const series = new Series<Distribution>(metric, () => ({
    counts: new Array<number>(buckets.length + 1).fill(0),
    sum: 0,
  }));
  publish(registry, metric, () => series.all().flatMap((each) => samplesOf(metric, each)));
  return {
    begin: (more: Labels): void => {
      series.begin(more);
    },
    /** `weight`: number of observations. */
    observe(values: LabelValues, observed: number, weight = 1): void {
      const distribution = series.of(values);
      const bucket = buckets.findIndex((bound) => observed <= bound);
      const { counts } = distribution;
      const at = bucket < 0 ? buckets.length : bucket;
      counts[at] = (counts[at] ?? 0) + weight;
      distribution.sum += observed * weight;
    },
  };
}

export type HistogramSeries = ReturnType<typeof createHistogram>;

/** Returns the samples of a series of a histogram; buckets are cumulative. */
function samplesOf({ name, buckets = [] }: MetricEntry, { labels, counts, sum }: Distribution): Reading[] {
  let count = 0;
  const cumulative = counts.map((added, at) => {
    count += added;
    return { metricName: `${name}_bucket`, labels: { le: buckets[at] ?? '+Inf', ...labels }, value: count };
  });
  return [
    ...cumulative,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}

type GaugeOf<T> = readonly [metric: MetricEntry, read: (from: T) => LabelledValue];

/**
 * Creates gauges that are read at each scrape, when every source item sets each gauge. Returns a function that registers the
 * source.
 */
export function addGauges<T>(registry: Registry, gauges: readonly GaugeOf<T>[]) {
  let readAll = (): readonly T[] => [];
  for (const [metric, read] of gauges) {
    const without = metric.labelNames.length === 0 ? [{ labels: {}, value: 0 }] : [];
    publish(registry, metric, () => {
      const readings = readAll().map(read);
      return readings.length === 0 ? without : readings;
    });
  }
  return (reader: () => readonly T[]): void => {
    readAll = reader;
  };
}
