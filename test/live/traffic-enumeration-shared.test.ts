// Enumeration limits on one Redis: a network is limited and released on every instance.
import { Redis } from 'ioredis';
import request from 'supertest';
import { afterAll, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';
import type { Proxy } from '../support/proxy.js';

const demo = await startDemoServer();
const GUESSER = '198.51.100.7';
const env = { TRAFFIC_ENUMERATION_PER_MINUTE: '5', HTTP_TRUSTED_PROXIES: 'loopback' };

let guesses = 0;
const guess = async (url: string, address: string): Promise<number> =>
  (await ask(url, `/api/handles/21.T11998/guess-${++guesses}`, { headers: { 'X-Forwarded-For': address } }))
    .status;

describeWithRedis('two instances on one Redis', () => {
  let redis: RedisServer;
  afterAll(() => redis.stop());

  test('share the start and the end of an enumeration limit on a network', async () => {
    redis = await startRedis();
    const sharing = { redisUrl: redis.url, upstreamUrl: demo.url, env };
    const [a, b] = [await startSharing(sharing), await startSharing(sharing)];
    const limitedBy = (proxy: Proxy): Promise<number> => guess(proxy.url, GUESSER);
    const blockedBy = async ({ app }: Proxy) => (await request(app.admin).get('/traffic')).body as object;
    // Guesses at the instance itself would sooner or later make it set the limit.
    const learnsOfLimit = async (proxy: Proxy): Promise<void> => {
      const blocked = [expect.objectContaining({ network: '198.51.100.0/24' })];
      await expect.poll(() => blockedBy(proxy)).toMatchObject({ blocked });
      expect(await limitedBy(proxy)).toBe(429);
    };
    for (let times = 0; times < 6; times++) expect(await limitedBy(a)).toBe(404);
    expect(await limitedBy(a)).toBe(429);
    await learnsOfLimit(b);
    const later = await startSharing(sharing);
    await learnsOfLimit(later);

    await request(b.app.admin).delete('/traffic/blocked/198.51.100.0%2F24').expect(204);
    for (const proxy of [a, later]) await expect.poll(() => blockedBy(proxy)).toMatchObject({ blocked: [] });
    for (let times = 0; times < 6; times++) await limitedBy(a);
    await learnsOfLimit(b);

    // The clock of Redis was set back by a day: no limit can last that long.
    const client = new Redis(redis.url);
    const [limited = ''] = await client.keys('*limited');
    const [second] = await client.time();
    const other = 'unknown-names 203.0.113.0/24';
    await client.zadd(limited, (Number(second) + 86_400) * 1000, other);
    await expect.poll(() => client.zscore(limited, other)).toBe(null);
    expect(await guess(b.url, '203.0.113.7')).toBe(404);
    client.disconnect();

    await redis.stop();
    await Promise.all([redisIs(a, 0), redisIs(b, 0)]);
    expect([await limitedBy(a), await limitedBy(b)]).toEqual([429, 429]);
  });
});
