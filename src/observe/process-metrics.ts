// Measures the process itself: CPU time, memory, the event loop and garbage collections.
import { type Metric, Registry, collectDefaultMetrics } from 'prom-client';

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
export function registerProcessMetrics(registry: Registry): void {
  shared ??= collectOnce();
  for (const { name } of shared.getMetricsAsArray()) {
    registry.registerMetric(shared.getSingleMetric(name) as Metric);
  }
}
