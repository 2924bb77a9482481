// The admin API of two instances on one Redis. test/live/purge.test.ts covers purges in detail.
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import type { Proxy } from '../support/proxy.js';
import { describeTwoProxies } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/demo';
const PATH = `/api/handles/${HANDLE}`;
const WAIT = { timeout: 60_000 };

interface Look {
  cached: boolean;
  copies: { tier: string; state: string; hits?: number }[];
}

const get = async (proxy: Proxy, path: string): Promise<unknown> =>
  (await request(proxy.app.admin).get(path).expect(200)).body as unknown;
const look = async (proxy: Proxy): Promise<Look> => (await get(proxy, `/cache?handle=${HANDLE}`)) as Look;

describe('admin API of two instances on one Redis', () => {
  describeTwoProxies({ upstreamUrl: demo.url }, (two) => {
    test('lists cache entries in the memory of the called instance and in Redis', async () => {
      await two.one.ask(PATH);
      await expect.poll(async () => (await look(two.other)).copies.length, WAIT).toBe(1);
      expect(await look(two.other)).toMatchObject({
        cached: true,
        copies: [{ tier: 'redis', state: 'fresh' }],
      });
      await two.other.ask(PATH);
      for (const proxy of [two.one, two.other]) {
        const { copies } = await look(proxy);
        expect(copies.map(({ tier, state }) => [tier, state])).toEqual([
          ['memory', 'fresh'],
          ['redis', 'fresh'],
        ]);
      }
    });

    test('removes a purged entry from both instances', async () => {
      await two.one.ask(PATH);
      await expect.poll(async () => (await look(two.other)).cached, WAIT).toBe(true);
      await two.other.ask(PATH);
      await request(two.one.app.admin).post('/purge').send({ handle: HANDLE }).expect(200);
      expect(await look(two.one)).toEqual({ handle: HANDLE, cached: false, copies: [] });
      await expect.poll(() => look(two.other), WAIT).toEqual({ handle: HANDLE, cached: false, copies: [] });
    });

    test('returns the statistics of the called instance, with the state of the shared Redis', async () => {
      await two.one.ask(PATH);
      await two.one.ask(PATH);
      await two.other.ask(`${PATH}-other`);
      expect(await get(two.one, '/stats')).toMatchObject({
        requests: { total: 2, byResult: { hit: 1, miss: 1 } },
        topHandles: [{ name: HANDLE, count: 2 }],
        redis: { state: 'up' },
      });
      expect(await get(two.other, '/stats')).toMatchObject({
        requests: { total: 1 },
        topHandles: [{ name: `${HANDLE}-other`, count: 1 }],
        redis: { state: 'up' },
      });
    });

    test('changes the log level only in the called instance', async () => {
      await request(two.one.app.admin).put('/log-level').send({ level: 'fatal' }).expect(200);
      expect(await get(two.one, '/stats')).toMatchObject({ logLevel: 'fatal' });
      expect(await get(two.other, '/stats')).toMatchObject({ logLevel: 'silent' });
    });
  });
});
