// Token buckets of several instances: shared in Redis, and separate during a Redis outage.
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';
import type { Proxy } from '../support/proxy.js';

const PATH = '/api/handles/21.T11998/page';
const env = {
  TRAFFIC_RULES: JSON.stringify([{ name: 'all', limit: { perMinute: 3 } }]),
  HTTP_TRUSTED_PROXIES: 'loopback',
};

describeWithRedis('two instances on one Redis', () => {
  let redis: RedisServer;
  afterAll(() => redis.stop());

  const statusFrom = async (proxy: Proxy, address: string): Promise<number> =>
    (await proxy.ask(PATH, { headers: { 'X-Forwarded-For': address } })).status;

  test('share a token bucket, and count separately during a Redis outage', async () => {
    redis = await startRedis();
    const demo = await startDemoServer();
    const sharing = { redisUrl: redis.url, upstreamUrl: demo.url, env };
    const [a, b] = [await startSharing(sharing), await startSharing(sharing)];
    const shared = [];
    for (const proxy of [a, b, a, b, a]) shared.push(await statusFrom(proxy, '192.0.2.1'));
    expect(shared).toEqual([200, 200, 200, 429, 429]);
    expect(await statusFrom(b, '192.0.2.2')).toBe(200);

    // The clock of Redis was set back by a day: no bucket can take that long to fill.
    const client = new Redis(redis.url);
    const [bucket = ''] = await client.keys('*bucket:*192.0.2.1*');
    const [second] = await client.time();
    await client.set(bucket, String((Number(second) + 86_400) * 1000), 'PX', 86_400_000);
    expect(await statusFrom(b, '192.0.2.1')).toBe(200);
    client.disconnect();

    await redis.stop();
    await Promise.all([redisIs(a, 0), redisIs(b, 0)]);
    const alone = [];
    for (const proxy of [a, b, a, b, a, a]) alone.push(await statusFrom(proxy, '192.0.2.3'));
    expect(alone).toEqual([200, 200, 200, 200, 200, 429]);
  });
});
