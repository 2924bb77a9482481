// A limited network is limited in every worker, and with Redis in every instance; undone in one, it is undone in all.
import request from 'supertest';
import { afterAll, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';
import type { Proxy } from '../support/proxy.js';

const demo = await startDemoServer();
const GUESSER = '198.51.100.7';
const env = { TRAFFIC_UNKNOWN_PER_MINUTE: '5', HTTP_TRUSTED_PROXIES: 'loopback' };

let guesses = 0;
const guess = async (url: string, address: string): Promise<number> =>
  (await ask(url, `/api/handles/21.T11998/guess-${++guesses}`, { headers: { 'X-Forwarded-For': address } }))
    .status;

test('workers: every one refuses at once, whichever has counted', async () => {
  const proxy: BuiltProxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, SERVER_WORKERS: '2', ...env });
  const limited = (): object[] => proxy.logs().filter(({ msg }) => msg === 'network limited for its misses');
  // Each worker counts for itself: at the latest after twice as many.
  for (let times = 0; times < 12; times++) await guess(proxy.url, GUESSER);
  await expect.poll(limited).not.toHaveLength(0);
  demo.reset();
  const many = await Promise.all(Array.from({ length: 40 }, () => guess(proxy.url, GUESSER)));
  expect([new Set(many), demo.asked]).toEqual([new Set([429]), 0]);
  expect(await guess(proxy.url, '192.0.2.1')).toBe(404);
  const blocked = { network: '198.51.100.0/24', reason: 'unknown-names' };
  expect(JSON.parse((await ask(proxy.adminUrl, '/traffic')).text)).toMatchObject({ blocked: [blocked] });
  const path = '/traffic/blocked/198.51.100.0%2F24';
  expect((await ask(proxy.adminUrl, path, { method: 'DELETE' })).status).toBe(204);
  expect(await guess(proxy.url, GUESSER)).toBe(404);
  expect((await ask(proxy.adminUrl, path, { method: 'DELETE' })).status).toBe(404);
});

describeWithRedis('two instances on one Redis', () => {
  let redis: RedisServer;
  afterAll(() => redis.stop());

  test('share the limit and its end', async () => {
    redis = await startRedis();
    const sharing = { redisUrl: redis.url, upstreamUrl: demo.url, env };
    const [a, b] = [await startSharing(sharing), await startSharing(sharing)];
    const limitedBy = (proxy: Proxy): Promise<number> => guess(proxy.url, GUESSER);
    for (let times = 0; times < 6; times++) expect(await limitedBy(a)).toBe(404);
    expect(await limitedBy(a)).toBe(429);
    await expect.poll(() => limitedBy(b)).toBe(429);
    const later = await startSharing(sharing);
    await expect.poll(() => limitedBy(later)).toBe(429);

    await request(b.app.admin).delete('/traffic/blocked/198.51.100.0%2F24').expect(204);
    for (const proxy of [a, later]) {
      const traffic = async () => (await request(proxy.app.admin).get('/traffic')).body as object;
      await expect.poll(traffic).toMatchObject({ blocked: [] });
    }
    for (let times = 0; times < 6; times++) await limitedBy(a);
    await expect.poll(() => limitedBy(b)).toBe(429);

    await redis.stop();
    await Promise.all([redisIs(a, 0), redisIs(b, 0)]);
    expect([await limitedBy(a), await limitedBy(b)]).toEqual([429, 429]);
  });
});
