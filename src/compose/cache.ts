// Creates the cache, with its Redis options, and reports its events to log and metrics.
import { hostname } from 'node:os';
import { type Cache, type CacheDeps, createCache } from '../cache/cache.js';
import type { RedisOptions } from '../cache/instance.js';
import { databaseNumber } from '../cache/redis/connections.js';
import { shortHash } from '../cache/redis/namespace.js';
import { isLoopback } from '../config/addresses.js';
import type { Config } from '../config/schema.js';
import type { SharedDeps } from './shared-deps.js';

/** The upstream may still carry out a write for this time after `upstream.writeTimeout`. */
const FENCE_SPARE_MS = 15_000;

export function makeCache(
  shared: SharedDeps,
  { onInvalidated, onBanned }: Pick<CacheDeps, 'onInvalidated' | 'onBanned'>,
): Cache {
  const { config, now, logger, metrics, activity, peers } = shared;
  const { cache, upstream } = config;
  return createCache({
    bounds: { maxBytes: cache.maxBytes, found: cache.found, notFound: cache.notFound },
    redis: redisOptions(shared),
    fenceLifeMs: upstream.queueTimeout + upstream.writeTimeout + FENCE_SPARE_MS,
    now,
    worker: peers,
    onInvalidated,
    onBanned,
    onEvict: (store) => {
      metrics.countEviction(store);
    },
    onRedisState(state) {
      metrics.setRedisState(state);
      if (state === 'up') logger.info('redis connected');
      else {
        logger.warn('redis unavailable, answering from memory and upstream');
        activity.addError('redis unavailable');
      }
    },
  });
}

/** Undefined where no Redis is configured. */
export function redisOptions({
  config,
  upstreamUrl,
  redisCa,
  logger,
  metrics,
}: Pick<SharedDeps, 'upstreamUrl' | 'logger'> & {
  config: Pick<Config, 'redis'>;
  redisCa?: string | undefined;
  metrics?: Pick<SharedDeps['metrics'], 'countRedisError'>;
}): RedisOptions | undefined {
  const { url, sentinels, sentinelName, cluster, keyPrefix, commandTimeout, lostMaxAge, writesWithout } =
    config.redis;
  if ((url ?? sentinels ?? cluster) === undefined) return undefined;
  return {
    url,
    sentinels,
    cluster,
    sentinelName,
    ca: redisCa,
    keyPrefix: keyPrefix ?? defaultKeyPrefix(upstreamUrl, config.redis),
    // A derived prefix names the upstream itself.
    upstream: keyPrefix && upstreamUrl,
    commandTimeoutMs: commandTimeout,
    lostMaxAgeMs: lostMaxAge,
    writesWithout,
    onError: (command) => {
      metrics?.countRedisError(command);
    },
    onTrouble: (reason) => {
      logger.warn({ reason }, 'redis error');
    },
    onEvictionPolicy: (policy) => {
      const remedy = 'set maxmemory-policy to volatile-lru or noeviction';
      logger.warn(
        { policy, remedy },
        'redis may evict coordination keys, each eviction delays writes by 2.5 s',
      );
    },
    onForeign: (found) => {
      logger.warn(found, 'redis.keyPrefix belongs to another upstream, using a separate prefix');
    },
  };
}

/** Differs by upstream and database: without `redis.keyPrefix`, proxies of different upstreams share nothing. */
export function defaultKeyPrefix(
  upstreamUrl: string,
  redis: Pick<Config['redis'], 'url' | 'cluster'>,
  machine = hostname(),
): string {
  const { origin, hostname: host } = new URL(upstreamUrl);
  // A loopback address is another server on each machine.
  const upstream = isLoopback(host) ? `${origin} of ${machine}` : origin;
  return `hrp:${shortHash(upstream)}:${databaseNumber(redis)}:`;
}
