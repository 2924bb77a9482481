// Makes the cache and says what becomes of its messages.
import { type Cache, type CacheDeps, createCache } from '../cache/cache.js';
import { defaultKeyPrefix } from './key-prefix.js';
import type { Parts } from './parts.js';

export function makeCache(
  { config, upstreamUrl, redisCa, now, logger, metrics, activity, peers }: Parts,
  { onForgotten, onSwept }: Pick<CacheDeps, 'onForgotten' | 'onSwept'>,
): Cache {
  const { cache, redis, upstream } = config;
  const { url, sentinels, sentinelName, cluster } = redis;
  const redisOptions = {
    ...(url !== null && { url }),
    ...(sentinels !== null && { sentinels }),
    ...(cluster !== null && { cluster }),
    sentinelName,
    ca: redisCa,
    ...(redis.keyPrefix === null
      ? { keyPrefix: defaultKeyPrefix(upstreamUrl, redis) }
      : { keyPrefix: redis.keyPrefix, upstream: upstreamUrl }),
    commandTimeoutMs: redis.commandTimeout,
    lostMaxAgeMs: redis.lostMaxAge,
  };
  const isUsed = (url ?? sentinels ?? cluster) !== null;
  return createCache({
    bounds: { maxBytes: cache.maxBytes, found: cache.found, notFound: cache.notFound },
    ...(isUsed && { redis: redisOptions }),
    fenceLifeMs: upstream.queueTimeout + upstream.writeTimeout + FENCE_SPARE_MS,
    markLifeMs: 2 * (upstream.queueTimeout + FENCE_SPARE_MS) + upstream.writeTimeout + upstream.timeout,
    lockWaitMs: config.v2.lockWait,
    now,
    ...(peers ? { tellPeers: peers.tell, takeTurn: peers.takeTurn } : {}),
    onForgotten,
    onSwept,
    onEvict: (store) => {
      metrics.entryEvicted(store);
    },
    onRedisError: (command) => {
      metrics.redisFailed(command);
    },
    onRedisTrouble: (reason) => {
      logger.warn({ reason }, 'redis cannot be used');
    },
    onForeignPrefix: (found) => {
      logger.warn(found, 'redis.keyPrefix belongs to another upstream: nothing is shared with it');
    },
    onRedisState(state) {
      metrics.redisIs(state);
      if (state === 'up') logger.info('redis is connected');
      else {
        logger.warn('redis is away: answering from memory and upstream');
        activity.failed('redis is away');
      }
    },
  });
}

/** A write that was given up after `upstream.writeTimeout` may still be carried out for so long. */
const FENCE_SPARE_MS = 15_000;
