// The dependencies that all parts share: configuration, log, metrics, tracer, clock.
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { type MemoryBudget, createMemoryBudget } from '../http/request-body.js';
import type { Logger } from '../observe/logger.js';
import type { Metrics } from '../observe/metrics.js';
import { type Tracer, createSpanSender, createTracer } from '../observe/tracer.js';
import { TimeSlicer } from '../time-slicer.js';
import type { createPools } from '../upstream/connections.js';

export interface SharedDeps {
  context: Context;
  /** Replaced by a reload: a part that copies a value keeps that of the start. */
  config: Config;
  logger: Logger;
  metrics: Metrics;
  /** Our name in `Via`. */
  pseudonym: string;
  now: () => number;
  /** Of request bodies and of native messages on TCP. */
  bodies: MemoryBudget;
  /** Of responses that clients have not read. */
  unsent: MemoryBudget;
  /** For work that a record, a list or a batch can make long. */
  slicer: TimeSlicer;
  /** How to connect to the upstream and the reverse look-up service; undici pools by default. */
  createDispatcher?: typeof createPools;
  /** When traces are turned on. */
  tracer?: Tracer;
}

/** What bounds the work and the memory of all requests. One body of the maximum size is always accepted. */
export const makeBounds = ({ http }: Config): Pick<SharedDeps, 'bodies' | 'unsent' | 'slicer'> => ({
  bodies: createMemoryBudget(Math.max(http.maxBodyBytes, http.bodiesMaxBytes)),
  unsent: createMemoryBudget(http.unsentMaxBytes),
  slicer: new TimeSlicer({ monotonic: () => performance.now(), nextTurn: setImmediate }),
});

export interface Tracing {
  tracer: Tracer;
  /** Sends the buffered spans. */
  close: () => Promise<void>;
}

/** @returns undefined where no tracing endpoint is configured */
export function makeTracing(
  { tracing: { endpoint, samplePercent } }: Config,
  logger: Logger,
  now: () => number,
): Tracing | undefined {
  if (endpoint === undefined) return undefined;
  let wasFailing = false;
  const sender = createSpanSender({
    endpoint,
    serviceName: 'handle-resolver-proxy',
    onSent() {
      wasFailing = false;
    },
    onFailure(error) {
      // Once for an outage, not for each batch.
      if (!wasFailing) logger.warn({ err: error }, 'trace export failed');
      wasFailing = true;
    },
  });
  return { tracer: createTracer({ sender, samplePercent, random: Math.random, now }), close: sender.close };
}
