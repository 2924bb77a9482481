// Counters, histograms and gauges of the list of metrics, and their series that are 0 from the start.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { MetricEntry } from './metric-list.js';

/** Seconds, from a fast upstream in the same network to the default `upstream.timeout`. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type Reading = readonly [labels: Record<string, string>, value: number];

export function addCounter(
  registry: Registry,
  metric: MetricEntry,
  collect: () => void = () => undefined,
): Counter {
  const counter = new Counter({ ...metric, registers: [registry], collect });
  if (!isByConfigured(metric)) zeroCounter(counter, metric);
  return counter;
}

export function addHistogram(registry: Registry, metric: MetricEntry): Histogram {
  const histogram = new Histogram({ ...metric, registers: [registry], buckets: BUCKETS });
  if (!isByConfigured(metric)) zeroHistogram(histogram, metric);
  return histogram;
}

/** Servers and rules are known later. */
const isByConfigured = ({ labelNames }: MetricEntry): boolean =>
  labelNames.includes('server') || labelNames.includes('rule');

/** `more` are labels that not every deployment has. */
export function zeroCounter(counter: Counter, { fromStart = [] }: MetricEntry, more = {}): void {
  for (const labels of fromStart) counter.inc({ ...more, ...labels }, 0);
}

export function zeroHistogram(histogram: Histogram, { fromStart = [] }: MetricEntry, more = {}): void {
  for (const labels of fromStart) histogram.zero({ ...more, ...labels });
}

/** A gauge whose values are read at each scrape. */
export function addGauge(registry: Registry, metric: MetricEntry, read: () => readonly Reading[]): void {
  new Gauge({
    ...metric,
    registers: [registry],
    collect() {
      for (const [labels, value] of read()) this.set(labels, value);
    },
  });
}
