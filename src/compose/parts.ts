// What every part of the wiring needs to know of the whole.
import { randomBytes } from 'node:crypto';
import type { WorkerCoherence } from '../cache/cache.js';
import type { WorkerCoordination } from '../coordination/coordination.js';
import type { Config } from '../config/schema.js';
import type { Outcome } from '../handle/outcome.js';
import type { Activity } from '../observe/activity.js';
import type { Logger } from '../observe/logger.js';
import type { Metrics } from '../observe/metrics.js';
import type { Tracer } from '../observe/tracer.js';
import type { createPools } from '../upstream/connections.js';

export interface Peers extends WorkerCoherence, WorkerCoordination {
  /** Loads in the worker that owns the key; undefined when this worker has to load by itself; rejects with the failure there. */
  loadAtOwner: (key: string, handle: string) => Promise<Outcome | undefined>;
  /** From now on the other workers load by themselves, pending loads included. */
  stopLoading: () => void;
}

export interface Parts {
  /** Another one after a reload: who keeps a value of it keeps that of the start. */
  config: Config;
  /** Text of the PEM file `upstream.caFile`. */
  ca?: string;
  /** Text of the PEM file `redis.caFile`. */
  redisCa?: string;
  logger: Logger;
  metrics: Metrics;
  activity: Activity;
  upstreamUrl: string;
  /** Our name in `Via`. It is this proxy's own, so that proxies may stand in a row without being a loop. */
  pseudonym: string;
  now: () => number;
  /** How to connect to the upstream and the reverse look-up service; undici pools by default. */
  createDispatcher?: typeof createPools;
  /** When traces are turned on. */
  tracer?: Tracer;
  /** The other workers of this machine, when there are any. */
  peers?: Peers;
}

/** What becomes of a failure that is nobody's fault but ours, beside the 500 for its request. */
export const reportUnexpected =
  ({ logger, metrics }: Pick<Parts, 'logger' | 'metrics'>) =>
  (error: unknown): void => {
    logger.error({ err: error }, 'unexpected error');
    metrics.internalError();
  };

/** A name for one proxy among others. */
export const newInstance = (): string => randomBytes(4).toString('hex');
