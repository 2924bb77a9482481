// Creates the coordination of instances, and logs the networks that are limited.
import type { Cache } from '../cache/cache.js';
import { type Coordination, createCoordination } from '../coordination/coordination.js';
import type { LimitedNetwork } from '../coordination/limited-networks.js';
import { upstreamServers } from '../config/upstream-servers.js';
import type { SharedDeps } from './shared-deps.js';

export function makeCoordination(shared: SharedDeps, { commands }: Pick<Cache, 'commands'>): Coordination {
  const { config, now, logger } = shared;
  const shown = ({ network, reason, until }: LimitedNetwork): object => ({
    network,
    reason,
    until: new Date(until).toISOString(),
  });
  return createCoordination({
    shared: commands,
    lockWaitMs: config.v2.lockWaitMs,
    redisLock: {
      waitMs: config.redis.lockWaitMs,
      writeMs: Math.max(0, ...upstreamServers(config).map(({ writeTimeoutMs }) => writeTimeoutMs)),
    },
    now,
    limitsNetworks: () => shared.config.traffic.unknown.perMinute > 0,
    onLimited(limited) {
      logger.warn(shown(limited), 'network limited for its misses');
    },
    onLimitEnded(limited) {
      logger.info(shown(limited), 'network no longer limited');
    },
  });
}
