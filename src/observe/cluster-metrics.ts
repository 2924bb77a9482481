// Sums the metrics of all workers.
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import type { Metrics } from './metrics.js';

/** The metrics of one process. */
export type MetricSnapshot = MetricObjectWithValues<MetricValue<string>>[];

/** A running worker and its metrics; undefined when it did not respond in time. */
export interface WorkerSnapshot {
  id: number;
  snapshot: MetricSnapshot | undefined;
}

/**
 * For a worker that does not respond, the sum uses its last snapshot; counters of exited workers are kept. A falling
 * sum would look to Prometheus like a restart, and its rise afterwards like new requests.
 */
export function createClusterMetrics(
  collectSnapshots: () => Promise<WorkerSnapshot[]>,
): Pick<Metrics, 'exposition' | 'contentType'> {
  const last = new Map<number, MetricSnapshot>();
  let exited: MetricSnapshot = [];
  let queue: Promise<unknown> = Promise.resolve();

  async function collect(): Promise<string> {
    const workers = await collectSnapshots();
    for (const { id, snapshot } of workers) if (snapshot) last.set(id, snapshot);
    for (const id of [...last.keys()])
      if (!workers.some((worker) => worker.id === id)) await keepCounters(id);
    return AggregatorRegistry.aggregate([...last.values(), exited]).metrics();
  }

  async function keepCounters(id: number): Promise<void> {
    const counters = (last.get(id) ?? []).filter(isCounter);
    last.delete(id);
    exited = await AggregatorRegistry.aggregate([exited, counters]).getMetricsAsJSON();
  }

  return {
    /** Serialised, because each collection updates the counters of exited workers. */
    exposition() {
      const collected = queue.then(collect);
      queue = collected.catch(() => undefined);
      return collected;
    },
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
  };
}

/** prom-client types `type` as a number, but it is a string. */
const isCounter = ({ type }: MetricSnapshot[number]): boolean =>
  ['counter', 'histogram'].includes(String(type));
