// Creates the cache, with its Redis options, and reports its events to log and metrics.
import { hostname } from 'node:os';
import { type Cache, type CacheDeps, type RedisOptions, createCache } from '../cache/cache.js';
import { databaseNumber, redisAddress } from '../cache/redis/connections.js';
import { shortHash } from '../cache/redis/namespace.js';
import { isLoopback } from '../config/addresses.js';
import type { Config } from '../config/schema.js';
import {
  type ServerConfig,
  describeServers,
  maxWriteMs,
  upstreamServers,
} from '../config/upstream-servers.js';
import type { SharedDeps } from './shared-deps.js';

/** The upstream may still carry out a write for this time after `upstream.writeTimeout`. */
const FENCE_SPARE_MS = 15_000;

export type CacheEvents = Pick<CacheDeps, 'onInvalidated' | 'onBanned' | 'onDeleted'>;

export function makeCache(shared: SharedDeps, events: CacheEvents): Cache {
  const { config, now, logger, metrics } = shared;
  const { cache } = config;
  return createCache({
    bounds: { maxBytes: cache.maxBytes, found: cache.found, notFound: cache.notFound },
    redis: redisOptions(shared),
    fenceLifeMs: maxWriteMs(upstreamServers(config)) + FENCE_SPARE_MS,
    now,
    ...events,
    onEvict: (store) => {
      metrics.countEviction(store);
    },
    onRedisState(state) {
      metrics.setRedisState(state);
      if (state === 'up') logger.info('redis connected');
      else logger.warn('redis unavailable, answering from memory and upstream');
    },
  });
}

/** Undefined where no Redis is configured. */
function redisOptions({
  config,
  logger,
  metrics,
}: Pick<SharedDeps, 'config' | 'logger'> & {
  metrics?: Pick<SharedDeps['metrics'], 'countRedisError'>;
}): RedisOptions | undefined {
  const address = redisAddress(config.redis);
  if (address === undefined) return undefined;
  const servers = upstreamServers(config);
  const { keyPrefix, lostMaxAgeMs, writesWithout } = config.redis;
  return {
    ...address,
    keyPrefix: keyPrefix ?? defaultKeyPrefix(servers, config.redis),
    // A derived prefix names the upstream itself.
    upstream: keyPrefix && describeServers(servers),
    lostMaxAgeMs,
    writesWithout,
    onError: (command) => {
      metrics?.countRedisError(command);
    },
    onTrouble: (reason) => {
      logger.warn({ reason }, 'redis error');
    },
    onEvictionPolicy: (policy) => {
      const remedy = 'set maxmemory-policy to noeviction or volatile-lru';
      logger.warn({ policy, remedy }, 'redis may evict locks or coordination keys');
    },
    onForeign: (found) => {
      logger.warn(found, 'redis.keyPrefix belongs to another upstream, using a separate prefix');
    },
  };
}

/** Differs by upstream and database: without `redis.keyPrefix`, proxies of different upstreams share nothing. */
export function defaultKeyPrefix(
  servers: readonly Pick<ServerConfig, 'url' | 'prefixes'>[],
  redis: Pick<Config['redis'], 'url' | 'cluster'>,
  machine = hostname(),
): string {
  const upstream = describeServers(servers);
  // A loopback address is another server on each machine.
  const isLocal = servers.some(({ url }) => isLoopback(new URL(url).hostname));
  return `hrp:${shortHash(isLocal ? `${upstream} of ${machine}` : upstream)}:${databaseNumber(redis)}:`;
}
