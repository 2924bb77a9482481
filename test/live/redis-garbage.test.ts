// What somebody else left in Redis, or says there, is no record and does no harm.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { defaultKeyPrefix } from '../../src/wiring/key-prefix.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { metric, startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/garbage';
const OTHER = '21.T11998/another';
const pathOf = (handle: string): string => `/api/handles/${handle}`;

describeWithRedis('a Redis that holds or says what we do not understand', () => {
  let redis: RedisServer;
  let client: Redis;
  let prefix: string;
  beforeAll(async () => {
    redis = await startRedis();
    prefix = defaultKeyPrefix(demo.url, { url: redis.url, cluster: null });
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });
  beforeEach(async () => {
    await client.flushall();
    demo.put(HANDLE, numbered(1));
    demo.put(OTHER, numbered(2));
    demo.reset();
  });
  const start = (): Promise<Proxy> => startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });

  test('the entry of another handle is not taken for this one', async () => {
    const one = await start();
    await one.ask(pathOf(OTHER));
    await expect.poll(() => client.keys('*:entry')).toHaveLength(1);
    const [name = ''] = await client.keys('*:entry');
    await client.copy(name, name.replace('ANOTHER', 'GARBAGE'));
    expect(numberIn(await (await start()).ask(pathOf(HANDLE)))).toBe(1);
  });

  test.each([
    '',
    'x',
    'forget',
    'forget - 0',
    `some-instance forget - -1 ${HANDLE}`,
    `some-instance raise w 99999999999999999999 ${HANDLE}`,
    'some-instance epoch - 99999999999999999999999999 ',
    'some-instance epoch - NaN ',
    'some-instance __proto__ - 0 x',
    `some-instance ${'x'.repeat(100_000)}`,
  ])('the message %#, which is none of ours, does no harm', async (message) => {
    const proxy = await start();
    await proxy.ask(pathOf(HANDLE));
    await client.publish(`${prefix}0:forget`, message);
    await client.publish(`${prefix}0:forget`, Buffer.from([0xff, 0x00, 0xfe]));
    for (let count = 0; count < 3; count++) {
      expect(numberIn(await proxy.ask(pathOf(HANDLE)))).toBe(1);
    }
    expect((await putNumbered(proxy.url, pathOf(HANDLE), 3)).status).toBe(200);
    expect(numberIn(await proxy.ask(pathOf(HANDLE)))).toBe(3);
    expect(await metric(proxy, 'handle_proxy_redis_up')).toBe(1);
  });

  test.each(['x', '-5', '1e308', '12abc', '99999999999999999999'])(
    'an epoch of %j does not keep what is written from being seen',
    async (epoch) => {
      await client.set(`${prefix}epoch`, epoch);
      const [one, other] = [await start(), await start()];
      await other.ask(pathOf(HANDLE));
      expect((await putNumbered(one.url, pathOf(HANDLE), 5)).status).toBe(200);
      await expect.poll(async () => numberIn(await other.ask(pathOf(HANDLE)))).toBe(5);
      expect(numberIn(await (await start()).ask(pathOf(HANDLE)))).toBe(5);
    },
  );

  test.each(['mark', 'writers', 'entry'])(
    'a %s of another kind does not keep what is written from being seen',
    async (part) => {
      const [one, other] = [await start(), await start()];
      await client.hset(`${prefix}{${HANDLE.toUpperCase()}}:${part}`, 'field', 'value');
      await other.ask(pathOf(HANDLE));
      await one.ask(pathOf(HANDLE));
      for (const count of [6, 7]) {
        expect((await putNumbered(one.url, pathOf(HANDLE), count)).status).toBe(200);
        expect(numberIn(await one.ask(pathOf(HANDLE)))).toBe(count);
      }
      await expect.poll(async () => numberIn(await other.ask(pathOf(HANDLE))), { timeout: 4000 }).toBe(7);
    },
  );
});
