// Coordination of workers and instances beside the cache: a lock for each key, token buckets, unclaimed names.
import type { RedisCommands } from '../cache/redis/commands.js';
import { type AcquireLocal, type KeyLock, createKeyLock } from './key-lock.js';
import { type TakeTokens, createTokenBuckets } from './token-bucket.js';
import {
  type BroadcastToWorkers,
  LocalUnclaimedNames,
  type UnclaimedNames,
  createUnclaimedNames,
} from './unclaimed-names.js';

/** Coordination of one of several workers: the primary has the queues. */
export interface WorkerCoordination {
  broadcast: BroadcastToWorkers;
  acquireLocal: AcquireLocal;
}

interface CoordinationDeps {
  /** Where Redis is used. */
  shared: RedisCommands | undefined;
  worker?: WorkerCoordination | undefined;
  /** Maximum time in the queue of a key (ms). */
  lockWaitMs: number;
  now: () => number;
}

export interface Coordination {
  /** Token buckets by name, over all instances. */
  takeTokens: TakeTokens;
  /** Locks a key, over all instances. */
  lock: KeyLock;
  /** Minted names whose response was lost. */
  unclaimed: UnclaimedNames;
  /** Applies a change of the unclaimed names by another worker. */
  receive: (line: string) => void;
}

export function createCoordination({ shared, worker, lockWaitMs, now }: CoordinationDeps): Coordination {
  const local = new LocalUnclaimedNames(now);
  const withRedis = shared && { shared };
  const ofWorker = worker && { acquireLocal: worker.acquireLocal };
  const lock = createKeyLock({ waitMs: lockWaitMs, ...ofWorker, ...withRedis });
  return {
    takeTokens: createTokenBuckets({ now, ...withRedis }),
    lock,
    unclaimed: createUnclaimedNames({
      local,
      lock,
      ...(worker && { broadcast: worker.broadcast }),
      ...withRedis,
    }),
    receive(line) {
      local.receive(line);
    },
  };
}
