// Coordination of workers and instances beside the cache: a lock for each key, token buckets, limited networks, unclaimed names.
import type { RedisCommands } from '../cache/redis/commands.js';
import { systemClock } from '../cache/clock.js';
import { type AcquireLocal, type KeyLock, createKeyLock } from './key-lock.js';
import { type LimitedNetwork, LimitedNetworks } from './limited-networks.js';
import { type RedisLockOptions, createRedisLock } from './redis-lock.js';
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
  /** The lock over all instances, where Redis is used. */
  redisLock: Pick<RedisLockOptions, 'waitMs' | 'writeMs'>;
  now: () => number;
  /** Whether networks are limited for their misses now. */
  limitsNetworks: () => boolean;
  /** Called for the networks that this process has limited. */
  onLimited: (limited: LimitedNetwork) => void;
  onLimitEnded: (limited: LimitedNetwork) => void;
}

export interface Coordination {
  /** Token buckets by name, over all instances. */
  takeTokens: TakeTokens;
  /** Locks a key, over all instances. */
  lock: KeyLock;
  limitedNetworks: LimitedNetworks;
  /** Minted names whose response was lost. */
  unclaimed: UnclaimedNames;
  /** Applies a change of the unclaimed names or the limited networks by another worker. */
  receive: (line: string) => void;
  close: () => void;
}

const REFRESH_MS = 1000;

export function createCoordination(deps: CoordinationDeps): Coordination {
  const { shared, worker, lockWaitMs, redisLock, now, limitsNetworks } = deps;
  const local = new LocalUnclaimedNames(now);
  const withRedis = shared && { shared };
  const ofWorker = worker && { acquireLocal: worker.acquireLocal };
  const { onLimited, onLimitEnded: onEnded } = deps;
  const limitedNetworks = new LimitedNetworks({
    now,
    shared,
    broadcast: worker?.broadcast,
    onLimited,
    onEnded,
  });
  const timer = setInterval(() => {
    if (limitsNetworks()) void limitedNetworks.refresh();
    else limitedNetworks.clear();
  }, REFRESH_MS).unref();
  const acquireShared = shared && createRedisLock({ redis: shared, ...redisLock, clock: systemClock });
  const lockOfMachine = createKeyLock({ waitMs: lockWaitMs, ...ofWorker });
  const lock = createKeyLock({ waitMs: lockWaitMs, ...ofWorker, ...(acquireShared && { acquireShared }) });
  return {
    takeTokens: createTokenBuckets({ now, ...withRedis }),
    lock,
    limitedNetworks,
    unclaimed: createUnclaimedNames({
      local,
      lock: lockOfMachine,
      ...(worker && { broadcast: worker.broadcast }),
      ...withRedis,
    }),
    receive(line) {
      local.receive(line);
      limitedNetworks.receive(line);
    },
    close() {
      clearInterval(timer);
    },
  };
}
