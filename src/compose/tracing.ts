// Makes the traces, where they are turned on: off, there is nothing at all of them.
import type { Config } from '../config/schema.js';
import type { Logger } from '../observe/logger.js';
import { createSpanSender } from '../observe/otlp.js';
import { type Tracer, createTracer } from '../observe/tracer.js';

export interface Tracing {
  tracer: Tracer;
  /** Sends what is left. */
  close: () => Promise<void>;
}

export function makeTracing(
  { tracing: { endpoint, samplePercent } }: Config,
  logger: Logger,
  now: () => number,
): Tracing | undefined {
  if (endpoint === null) return undefined;
  let wasFailing = false;
  const sender = createSpanSender({
    endpoint,
    serviceName: 'handle-resolver-proxy',
    onSent() {
      wasFailing = false;
    },
    onFailure(error) {
      // Once, not with each batch.
      if (!wasFailing) logger.warn({ err: error }, 'traces cannot be sent');
      wasFailing = true;
    },
  });
  return { tracer: createTracer({ sender, samplePercent, random: Math.random, now }), close: sender.close };
}
