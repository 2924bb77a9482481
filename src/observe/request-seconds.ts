// The histogram of request durations, whose observations have a weight.
import type { Histogram, Registry } from 'prom-client';
import type { Labels } from './label-values.js';
import { METRICS } from './metric-list.js';

/** Seconds, from a hit to the default `upstream.timeout`. */
const BUCKETS = [
  ...[0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01],
  ...[0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];

interface Series {
  labels: Labels;
  /** By bucket; the last one is that of longer durations. */
  counts: number[];
  sum: number;
}

/** `observe` of prom-client takes 1.4 µs and has no weight. */
export class RequestSeconds {
  readonly #byFamily = new Map<string, Map<string, Series>>();

  add(family: string, result: string, seconds: number, weight = 1): void {
    const series = this.#seriesOf(family, result);
    let bucket = 0;
    while (seconds > (BUCKETS[bucket] ?? Infinity)) bucket++;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + weight;
    series.sum += seconds * weight;
  }

  register(registry: Registry): void {
    const { name, help, type, fromStart } = METRICS.requestSeconds;
    for (const { family, result } of fromStart) this.#seriesOf(family, result);
    const series = (): Series[] => [...this.#byFamily.values()].flatMap((byResult) => [...byResult.values()]);
    const get = () => Promise.resolve({ name, help, type, values: series().flatMap(valuesOf) });
    // A registry calls nothing else.
    registry.registerMetric({ name, get } as unknown as Histogram);
  }

  #seriesOf(family: string, result: string): Series {
    let byResult = this.#byFamily.get(family);
    if (byResult === undefined) this.#byFamily.set(family, (byResult = new Map<string, Series>()));
    let series = byResult.get(result);
    if (series === undefined) {
      const counts = new Array<number>(BUCKETS.length + 1).fill(0);
      byResult.set(result, (series = { labels: { family, result }, counts, sum: 0 }));
    }
    return series;
  }
}

/** Buckets are cumulative. */
function valuesOf({ labels, counts, sum }: Series) {
  const { name } = METRICS.requestSeconds;
  let count = 0;
  const buckets = counts.map((added, at) => {
    count += added;
    return { metricName: `${name}_bucket`, labels: { le: BUCKETS[at] ?? '+Inf', ...labels }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
