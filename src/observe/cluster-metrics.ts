// Metrics of several processes as one.
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import type { Metrics } from './metrics.js';

/** What one process counts. */
export type MetricSnapshot = MetricObjectWithValues<MetricValue<string>>[];

/** A process that runs, and what it says; undefined when it did not answer in time. */
export interface Told {
  id: number;
  snapshot: MetricSnapshot | undefined;
}

/**
 * The sum over all processes. Of one that stands still it is what was last heard, and what one that ended has
 * counted stays: a sum that falls looks to Prometheus like a restart, and its rise afterwards like as much work.
 */
export function createClusterMetrics(
  ask: () => Promise<Told[]>,
): Pick<Metrics, 'exposition' | 'contentType'> {
  const last = new Map<number, MetricSnapshot>();
  let ended: MetricSnapshot = [];
  let turn: Promise<unknown> = Promise.resolve();

  async function collect(): Promise<string> {
    const told = await ask();
    for (const { id, snapshot } of told) if (snapshot) last.set(id, snapshot);
    for (const id of [...last.keys()]) if (!told.some((one) => one.id === id)) await end(id);
    return AggregatorRegistry.aggregate([...last.values(), ended]).metrics();
  }

  async function end(id: number): Promise<void> {
    const counts = (last.get(id) ?? []).filter(isCount);
    last.delete(id);
    ended = await AggregatorRegistry.aggregate([ended, counts]).getMetricsAsJSON();
  }

  return {
    /** One at a time: each changes what is kept of processes that ended. */
    exposition() {
      const collected = turn.then(collect);
      turn = collected.catch(() => undefined);
      return collected;
    },
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
  };
}

/** In prom-client's words; its types say that they are numbers. */
const isCount = ({ type }: MetricSnapshot[number]): boolean =>
  ['counter', 'histogram'].includes(String(type));
