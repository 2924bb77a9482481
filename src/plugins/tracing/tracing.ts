// Starts tracing: spans of requests and of their calls, exported to a collector.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Host, Started } from '../../app/plugin.js';
import type { Spans } from '../../hooks.js';
import type { Logger } from '../../observe/logger.js';
import type { Metrics } from '../../observe/metrics.js';
import { createSpanSender } from './otlp-sender.js';
import type { TracingConfig } from './plugin.js';
import { type OpenSpan, createTracer } from './tracer.js';

export function start(host: Host, settings: TracingConfig): Started {
  const { tracer, close } = createTracing(settings, host);
  return { spans: tracer, close };
}

interface TracingDeps {
  log: Pick<Logger, 'info' | 'warn'>;
  clock: { wall: () => number };
  metrics: Pick<Metrics, 'countDroppedTelemetry'>;
  isTrustedProxy: (address: string) => boolean;
}

interface Tracing {
  tracer: Spans;
  /** Exports the buffered spans for at most a second. */
  close: () => Promise<void>;
}

export function createTracing(
  { tracing: { endpoint = '', samplePercent } }: Pick<TracingConfig, 'tracing'>,
  { log, clock: { wall: now }, metrics, isTrustedProxy }: TracingDeps,
): Tracing {
  let isFailing = false;
  let dropped = 0;
  const sender = createSpanSender({
    endpoint,
    serviceName: 'handle-resolver-proxy',
    onSent() {
      if (isFailing) log.info({ dropped }, 'traces are exported again');
      isFailing = false;
      dropped = 0;
    },
    onDropped(count, err) {
      // Logs once per outage, not per batch.
      if (!isFailing) log.warn({ err }, 'trace export failed');
      isFailing = true;
      dropped += count;
      metrics.countDroppedTelemetry('trace', count);
    },
  });
  const storage = new AsyncLocalStorage<OpenSpan>();
  const tracer = createTracer({ storage, sender, samplePercent, isTrustedProxy, random: Math.random, now });
  async function close(): Promise<void> {
    await sender.close();
    // An enabled storage costs the process something for each promise.
    storage.disable();
  }
  return { tracer, close };
}
