// Makes the cache, and says what becomes of its events.
import { type Cache, type CacheDeps, createCache } from '../cache/cache.js';
import type { RedisOptions } from '../cache/instance.js';
import type { Config } from '../config/schema.js';
import { defaultKeyPrefix } from './key-prefix.js';
import type { Parts } from './parts.js';

export function makeCache(
  parts: Parts,
  { onInvalidated, onBanned }: Pick<CacheDeps, 'onInvalidated' | 'onBanned'>,
): Cache {
  const { config, now, logger, metrics, activity, peers } = parts;
  const { cache, upstream } = config;
  return createCache({
    bounds: { maxBytes: cache.maxBytes, found: cache.found, notFound: cache.notFound },
    redis: redisOptions(parts),
    fenceLifeMs: upstream.queueTimeout + upstream.writeTimeout + FENCE_SPARE_MS,
    now,
    worker: peers,
    onInvalidated,
    onBanned,
    onEvict: (store) => {
      metrics.entryEvicted(store);
    },
    onRedisState(state) {
      metrics.redisChanged(state);
      if (state === 'up') logger.info('redis is connected');
      else {
        logger.warn('redis is away: answering from memory and upstream');
        activity.failed('redis is away');
      }
    },
  });
}

/** What is needed to reach Redis; undefined where none is configured. */
export function redisOptions({
  config,
  upstreamUrl,
  redisCa,
  logger,
  metrics,
}: Pick<Parts, 'upstreamUrl' | 'logger'> & {
  config: Pick<Config, 'redis'>;
  redisCa?: string;
  metrics?: Pick<Parts['metrics'], 'redisFailed'>;
}): RedisOptions | undefined {
  const { url, sentinels, sentinelName, cluster, keyPrefix, commandTimeout, lostMaxAge, writesWithout } =
    config.redis;
  if ((url ?? sentinels ?? cluster) === null) return undefined;
  return {
    ...(url !== null && { url }),
    ...(sentinels !== null && { sentinels }),
    ...(cluster !== null && { cluster }),
    sentinelName,
    ca: redisCa,
    ...(keyPrefix === null
      ? { keyPrefix: defaultKeyPrefix(upstreamUrl, config.redis) }
      : { keyPrefix, upstream: upstreamUrl }),
    commandTimeoutMs: commandTimeout,
    lostMaxAgeMs: lostMaxAge,
    writesWithout,
    onError: (command) => {
      metrics?.redisFailed(command);
    },
    onTrouble: (reason) => {
      logger.warn({ reason }, 'redis cannot be used');
    },
    onEvictionPolicy: (policy) => {
      const remedy = 'set maxmemory-policy to volatile-lru or noeviction';
      logger.warn({ policy, remedy }, 'redis may evict coordination keys: writes would wait for 2.5 s each');
    },
    onForeign: (found) => {
      logger.warn(found, 'redis.keyPrefix belongs to another upstream: nothing is shared with it');
    },
  };
}

/** The upstream may still carry out a write for this time after `upstream.writeTimeout`. */
const FENCE_SPARE_MS = 15_000;
