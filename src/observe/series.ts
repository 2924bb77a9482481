// Series in a registry of prom-client, whose counters sort labels at each update, without weights.
import type { Metric, Registry } from 'prom-client';
import type { Labels, MetricEntry } from './metric-list.js';

/** Label values in the order of the label names. */
type LabelValues = readonly (string | number)[];

export interface LabelledValue {
  labels: Labels;
  value: number;
}

/** A value that a scrape reads. */
interface Reading {
  labels: Partial<Record<string, string | number>>;
  value: number;
  /** Name of a series of a histogram: `…_bucket`, `…_sum` or `…_count`. */
  metricName?: string;
}

function publish(
  registry: Registry,
  { name, help, type }: MetricEntry,
  read: () => readonly Reading[],
): void {
  const get = () => Promise.resolve({ name, help, type, values: read().map((each) => ({ ...each })) });
  // The registry uses only these two members.
  registry.registerMetric({ name, get } as unknown as Metric);
}

/** The series of a metric, which begin at 0. */
class Series<S extends { labels: Labels }> {
  readonly #series = new Map<string, S>();
  readonly #labelNames: readonly string[];

  constructor(
    private readonly metric: MetricEntry,
    private readonly zero: () => Omit<S, 'labels'>,
  ) {
    this.#labelNames = metric.labelNames ?? [];
    // The servers are not known yet.
    if (!this.#labelNames.includes('server')) this.begin();
  }

  of(values: LabelValues): S {
    const key = values.join('\n');
    let series = this.#series.get(key);
    if (series === undefined) {
      const labels = Object.fromEntries(this.#labelNames.map((name, at) => [name, String(values[at])]));
      series = { ...this.zero(), labels } as S;
      this.#series.set(key, series);
    }
    return series;
  }

  ofLabels(labels: Labels): S {
    return this.of(this.#labelNames.map((name) => labels[name] ?? ''));
  }

  /** Begins the series that are known. `more` contains labels whose values depend on the deployment. */
  begin(more: Labels = {}): void {
    const { fromStart = this.#labelNames.length === 0 ? [{}] : [] } = this.metric;
    for (const labels of fromStart) this.ofLabels({ ...more, ...labels });
  }

  all(): S[] {
    return [...this.#series.values()];
  }
}

export interface Distribution {
  labels: Labels;
  /** Counts per bucket; the last bucket is `+Inf`. */
  counts: number[];
  sum: number;
}

class WeightedHistogram extends Series<Distribution> {
  readonly #buckets: readonly number[];

  constructor(metric: MetricEntry) {
    const { buckets = [] } = metric;
    super(metric, () => ({ counts: new Array<number>(buckets.length + 1).fill(0), sum: 0 }));
    this.#buckets = buckets;
  }

  observe(values: LabelValues, observed: number, weight = 1): void {
    const distribution = this.of(values);
    const { counts } = distribution;
    let bucket = 0;
    while (observed > (this.#buckets[bucket] ?? Infinity)) bucket++;
    counts[bucket] = (counts[bucket] ?? 0) + weight;
    distribution.sum += observed * weight;
  }
}

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

export type AllSeries = ReturnType<typeof createAllSeries>;

/** Creates the series of a registry. Those of a metric begin with its first use, or when it is added. */
export function createAllSeries(registry: Registry) {
  const values = new Map<string, Series<LabelledValue>>();
  const histograms = new Map<string, WeightedHistogram>();
  const readers = new Map<string, () => number | readonly LabelledValue[]>();
  function valuesOf(metric: MetricEntry): Series<LabelledValue> {
    const { name } = metric;
    const known = values.get(name);
    if (known !== undefined) return known;
    const series = new Series<LabelledValue>(metric, () => ({ value: 0 }));
    publish(registry, metric, () => read(metric));
    values.set(name, series);
    return series;
  }
  function read(metric: MetricEntry): readonly LabelledValue[] {
    const readings = readers.get(metric.name)?.() ?? valuesOf(metric).all();
    return typeof readings === 'number' ? [{ labels: {}, value: readings }] : readings;
  }
  function histogramOf(metric: MetricEntry): WeightedHistogram {
    const known = histograms.get(metric.name);
    if (known !== undefined) return known;
    const histogram = new WeightedHistogram(metric);
    publish(registry, metric, () => histogram.all().flatMap((each) => samplesOf(metric, each)));
    histograms.set(metric.name, histogram);
    return histogram;
  }
  return {
    add: (metrics: Iterable<MetricEntry>): void => {
      for (const metric of metrics) (metric.type === 'histogram' ? histogramOf : valuesOf)(metric);
    },
    valuesOf,
    histogramOf,
    read,
    /** Registers the source of a gauge, which is read at each scrape: a number for a gauge without labels. */
    readGauge: ({ name }: MetricEntry, readNow: () => number | readonly LabelledValue[]): void => {
      readers.set(name, readNow);
    },
  };
}
