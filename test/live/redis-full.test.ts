// A Redis that is full and evicts nothing: nothing new is shared, but nothing that is over is believed.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { type KeyLock, createKeyLock } from '../../src/cache/lock.js';
import { RedisLink } from '../../src/cache/redis-link.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { testKeyLock } from '../support/lock-contract.js';
import type { Proxy } from '../support/proxy.js';
import { PATIENT_MS, type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { metric, startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/full';
const PATH = `/api/handles/${HANDLE}`;

describeWithRedis('a Redis that is full', () => {
  let redis: RedisServer;
  let client: Redis;
  beforeAll(async () => {
    redis = await startRedis(['--maxmemory-policy', 'noeviction']);
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });
  beforeEach(async () => {
    await client.config('SET', 'maxmemory', '0');
    await client.flushall();
    demo.put(HANDLE, numbered(0));
    demo.reset();
  });

  const start = (): Promise<Proxy> => startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });
  const isStored = () => expect.poll(() => client.keys('*:entry')).toHaveLength(1);
  /** From now on nothing that wants memory is taken. */
  const fill = async (): Promise<void> => {
    await client.config('SET', 'maxmemory', '1');
    await expect(client.set('more', 'more')).rejects.toThrow('OOM');
  };

  test('is read from, and what it cannot take is kept in memory', async () => {
    const one = await start();
    await one.ask(PATH);
    await isStored();
    await fill();
    const other = await start();
    expect((await other.ask(PATH)).headers['cache-status']).toContain('detail=redis');
    demo.put('21.T11998/new', numbered(1));
    demo.reset();
    for (let count = 0; count < 3; count++) {
      expect((await other.ask('/api/handles/21.T11998/new')).status).toBe(200);
    }
    expect(demo.asked).toBe(1);
    expect(await metric(other, 'handle_proxy_redis_up')).toBe(1);
  });

  test('hears of writes all the same, and so does every instance', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    await one.ask(PATH);
    await isStored();
    await other.ask(PATH);
    await fill();
    for (const count of [1, 2, 3]) {
      expect((await putNumbered(one.url, PATH, count)).status).toBe(200);
      await expect.poll(async () => numberIn(await other.ask(PATH))).toBe(count);
      expect(numberIn(await one.ask(PATH))).toBe(count);
      expect(numberIn(await (await start()).ask(PATH))).toBe(count);
    }
    expect(await metric(one, 'handle_proxy_redis_up')).toBe(1);
  });

  async function startInstance(waitMs: number): Promise<KeyLock> {
    const link = new RedisLink(
      { url: redis.url, keyPrefix: 't:', commandTimeoutMs: PATIENT_MS },
      () => undefined,
    );
    onTestFinished(() => link.close());
    await expect.poll(() => link.isUp()).toBe(true);
    return createKeyLock({ waitMs, shared: link });
  }

  testKeyLock(async (waitMs) => {
    await fill();
    return [await startInstance(waitMs), await startInstance(waitMs)];
  });
});
