// Starts proxies that share a real Redis and a demo server, and reads their metrics.
import nock from 'nock';
import request from 'supertest';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { type Proxy, startProxy } from './proxy.js';
import { PATIENCE, type RedisServer, describeWithRedis, startRedis } from './redis-server.js';

// The upstream is real here, so nock would only cost time.
nock.restore();

export interface Sharing {
  /** Undefined if `env` contains the Redis URL, or without Redis. */
  redisUrl?: string;
  upstreamUrl: string;
  env?: Record<string, string>;
}

/** Starts a proxy and waits until it is connected to Redis. */
export async function startSharing(sharing: Sharing): Promise<Proxy> {
  const proxy = await startSeparated(sharing);
  await redisIs(proxy, 1);
  return proxy;
}

/** Starts a proxy whose Redis may be unavailable. */
export const startSeparated = ({ redisUrl, upstreamUrl, env }: Sharing): Promise<Proxy> =>
  startProxy({
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    UPSTREAM_URL: upstreamUrl,
    ...PATIENCE,
    ...env,
  });

/** Set before each test. */
export interface TwoProxies {
  redis: RedisServer;
  one: Proxy;
  other: Proxy;
}

/** Defines a `describe` with one Redis, and two new proxies with empty caches for each test. */
export function describeTwoProxies(
  sharing: Omit<Sharing, 'redisUrl'>,
  tests: (two: TwoProxies) => void,
): void {
  describeWithRedis('with two instances on one Redis', () => {
    const two = {} as TwoProxies;
    beforeAll(async () => {
      two.redis = await startRedis();
    });
    afterAll(() => two.redis.stop());
    beforeEach(async () => {
      const start = (): Promise<Proxy> => startSharing({ ...sharing, redisUrl: two.redis.url });
      [two.one, two.other] = await Promise.all([start(), start()]);
      await request(two.one.app.admin).post('/purge').send({ all: true }).expect(200);
    });
    tests(two);
  });
}

/** Waits until the proxy reports its Redis as available (1) or lost (0). */
export const redisIs = (proxy: Proxy, up: 0 | 1): Promise<void> =>
  expect.poll(() => metric(proxy, 'handle_proxy_redis_up')).toBe(up);

/** Returns the sum of a counter or gauge over all labels. It reads one metric, because tests poll it. */
export async function metric(proxy: Proxy, name: string): Promise<number> {
  const { values } = await proxy.metric(name);
  return values.reduce((sum, { value }) => sum + value, 0);
}
