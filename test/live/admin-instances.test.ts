// What an operator sees and changes where two instances share one Redis. Purges have a file of their own.
import request from 'supertest';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import type { Proxy } from '../support/proxy.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/demo';
const PATH = `/api/handles/${HANDLE}`;
const WAIT = { timeout: 60_000 };

interface Look {
  cached: boolean;
  copies: { tier: string; use: string; hits?: number }[];
}

const get = async (proxy: Proxy, path: string): Promise<unknown> =>
  (await request(proxy.app.admin).get(path).expect(200)).body as unknown;
const look = async (proxy: Proxy): Promise<Look> => (await get(proxy, `/cache?handle=${HANDLE}`)) as Look;

describeWithRedis('with two instances on one Redis', () => {
  let redis: RedisServer;
  let one: Proxy;
  let other: Proxy;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    const sharing = { redisUrl: redis.url, upstreamUrl: demo.url };
    [one, other] = await Promise.all([startSharing(sharing), startSharing(sharing)]);
    await request(one.app.admin).post('/purge').send({ all: true }).expect(200);
  });

  test('cache statistics have the entries of this instance and of Redis', async () => {
    await one.ask(PATH);
    await expect.poll(async () => (await look(other)).copies.length, WAIT).toBe(1);
    expect(await look(other)).toMatchObject({ cached: true, copies: [{ tier: 'redis', use: 'fresh' }] });
    await other.ask(PATH);
    for (const proxy of [one, other]) {
      const { copies } = await look(proxy);
      expect(copies.map(({ tier, use }) => [tier, use])).toEqual([
        ['memory', 'fresh'],
        ['redis', 'fresh'],
      ]);
    }
  });

  test('after a purge in one, neither holds a copy', async () => {
    await one.ask(PATH);
    await expect.poll(async () => (await look(other)).cached, WAIT).toBe(true);
    await other.ask(PATH);
    await request(one.app.admin).post('/purge').send({ handle: HANDLE }).expect(200);
    expect(await look(one)).toEqual({ handle: HANDLE, cached: false, copies: [] });
    await expect.poll(() => look(other), WAIT).toEqual({ handle: HANDLE, cached: false, copies: [] });
  });

  test('the statistics are those of the instance, with the Redis both of them have', async () => {
    await one.ask(PATH);
    await one.ask(PATH);
    await other.ask(`${PATH}-other`);
    expect(await get(one, '/stats')).toMatchObject({
      requests: { total: 2, byResult: { hit: 1, miss: 1 } },
      topHandles: [{ name: HANDLE, count: 2 }],
      redis: { state: 'up' },
    });
    expect(await get(other, '/stats')).toMatchObject({
      requests: { total: 1 },
      topHandles: [{ name: `${HANDLE}-other`, count: 1 }],
      redis: { state: 'up' },
    });
  });

  test('the log level changes only in the instance that is called', async () => {
    await request(one.app.admin).put('/log-level').send({ level: 'fatal' }).expect(200);
    expect(await get(one, '/stats')).toMatchObject({ logLevel: 'fatal' });
    expect(await get(other, '/stats')).toMatchObject({ logLevel: 'silent' });
  });
});
