// Coordinates instances apart from the cache: key locks, token buckets, limited networks, unclaimed names.
import type { Cache } from '../cache/cache.js';
import { systemClock } from '../cache/clock.js';
import type { Config } from '../config/schema.js';
import type { ConfiguredServer } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { type KeyLock, createKeyLock } from './key-lock.js';
import { type LimitedNetwork, type LimitReports, LimitedNetworks } from './limited-networks.js';
import { createRedisLock } from './redis-lock.js';
import { type TakeTokens, createTokenBuckets } from './token-bucket.js';
import { type UnclaimedNames, createUnclaimedNames } from './unclaimed-names.js';

interface CoordinationSettings extends Pick<Config, 'v2' | 'redis' | 'traffic'> {
  servers: readonly Pick<ConfiguredServer, 'writeTimeoutMs'>[];
}

export interface Coordination {
  /** Takes tokens from a named bucket that all instances share. */
  takeTokens: TakeTokens;
  /** Locks a key on all instances. */
  lock: KeyLock;
  limitedNetworks: LimitedNetworks;
  /** Minted names whose response was lost. */
  unclaimed: UnclaimedNames;
  close: () => void;
}

const REFRESH_MS = 1000;

/** Creates the coordination. `settings` is called repeatedly, because a reload may change them. */
export function createCoordination(
  settings: () => CoordinationSettings,
  context: Context,
  { commands: shared, era }: Pick<Cache, 'commands' | 'era'>,
): Coordination {
  const { v2, redis, servers } = settings();
  const { now, wall } = context.clock;
  const withRedis = shared && { shared };
  const limitedNetworks = new LimitedNetworks({ now: wall, shared, ...logLimits(context) });
  const timer = setInterval(() => {
    if (settings().traffic.enumeration.perMinute > 0) void limitedNetworks.refresh();
    else limitedNetworks.clear();
  }, REFRESH_MS).unref();
  const writeMs = Math.max(0, ...servers.map(({ writeTimeoutMs }) => writeTimeoutMs));
  const redisLock = { era, waitMs: redis.lockWaitMs, writeMs, clock: systemClock };
  const acquireShared = shared && createRedisLock({ redis: shared, ...redisLock });
  return {
    takeTokens: createTokenBuckets({ now, ...withRedis }),
    lock: createKeyLock({ waitMs: v2.lockWaitMs, ...(acquireShared && { acquireShared }) }),
    limitedNetworks,
    unclaimed: createUnclaimedNames({ now, ...withRedis }),
    close() {
      clearInterval(timer);
    },
  };
}

/** Returns callbacks that log the limits set by this instance. */
function logLimits({ log }: Context): LimitReports {
  const shown = ({ network, reason, until }: LimitedNetwork): object => ({
    network,
    reason,
    until: new Date(until).toISOString(),
  });
  return {
    onLimited(limited) {
      log.warn(shown(limited), 'network limited for its misses');
    },
    onEnded(limited) {
      log.info(shown(limited), 'network no longer limited');
    },
  };
}
