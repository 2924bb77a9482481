// Coordination of instances beside the cache: a lock for each key, token buckets, limited networks, unclaimed names.
import type { RedisCommands } from '../cache/redis/commands.js';
import { systemClock } from '../cache/clock.js';
import { type KeyLock, createKeyLock } from './key-lock.js';
import { type LimitedNetwork, LimitedNetworks } from './limited-networks.js';
import { type RedisLockOptions, createRedisLock } from './redis-lock.js';
import { type TakeTokens, createTokenBuckets } from './token-bucket.js';
import { type UnclaimedNames, createUnclaimedNames } from './unclaimed-names.js';

interface CoordinationDeps {
  /** Where Redis is used. */
  shared: RedisCommands | undefined;
  /** Maximum time in the queue of a key (ms). */
  lockWaitMs: number;
  /** The lock over all instances, where Redis is used. */
  redisLock: Pick<RedisLockOptions, 'waitMs' | 'writeMs'>;
  now: () => number;
  /** Whether networks are limited for their misses now. */
  limitsNetworks: () => boolean;
  /** Called for the networks that this instance has limited. */
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
  close: () => void;
}

const REFRESH_MS = 1000;

export function createCoordination(deps: CoordinationDeps): Coordination {
  const { shared, lockWaitMs, redisLock, now, limitsNetworks } = deps;
  const withRedis = shared && { shared };
  const { onLimited, onLimitEnded: onEnded } = deps;
  const limitedNetworks = new LimitedNetworks({ now, shared, onLimited, onEnded });
  const timer = setInterval(() => {
    if (limitsNetworks()) void limitedNetworks.refresh();
    else limitedNetworks.clear();
  }, REFRESH_MS).unref();
  const acquireShared = shared && createRedisLock({ redis: shared, ...redisLock, clock: systemClock });
  return {
    takeTokens: createTokenBuckets({ now, ...withRedis }),
    lock: createKeyLock({ waitMs: lockWaitMs, ...(acquireShared && { acquireShared }) }),
    limitedNetworks,
    unclaimed: createUnclaimedNames({ now, ...withRedis }),
    close() {
      clearInterval(timer);
    },
  };
}
