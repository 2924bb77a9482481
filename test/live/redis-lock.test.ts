// The lock over all instances, on a real Redis.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type KeyLock, createKeyLock } from '../../src/cache/lock.js';
import { RedisLink } from '../../src/cache/redis-link.js';
import { testKeyLock } from '../support/lock-contract.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

describeWithRedis('a lock over instances on one Redis', () => {
  let redis: RedisServer;
  let client: Redis;
  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });

  /** The lock of an instance that has found its Redis. */
  async function startInstance(waitMs = 400): Promise<KeyLock> {
    const link = new RedisLink({ url: redis.url, keyPrefix: 't:', commandTimeoutMs: 500 }, () => undefined);
    onTestFinished(() => link.close());
    await expect.poll(() => link.isUp(), { timeout: 4000 }).toBe(true);
    return createKeyLock({ waitMs, shared: { link, keyPrefix: 't:' } });
  }

  testKeyLock(async () => [await startInstance(), await startInstance()]);

  test('of an instance that was killed ends by itself, and is not taken away before', async () => {
    const lock = await startInstance(2000);
    await client.set('t:{KEY}:lock', 'of somebody else', 'PX', 150);
    const begun = performance.now();
    await lock('KEY', () => Promise.resolve());
    expect(performance.now() - begun).toBeGreaterThan(100);
  });

  test('that has run out and is held by another is not released', async () => {
    const lock = await startInstance();
    await lock('KEY', async () => {
      await client.set('t:{KEY}:lock', 'of somebody else', 'PX', 5000);
    });
    expect(await client.get('t:{KEY}:lock')).toBe('of somebody else');
    await client.del('t:{KEY}:lock');
  });

  test('leaves nothing behind in Redis', async () => {
    const [one, other] = [await startInstance(), await startInstance()];
    await Promise.all([one('KEY', () => Promise.resolve()), other('KEY', () => Promise.resolve())]);
    expect(await client.keys('t:*:lock')).toEqual([]);
  });

  test('goes to an instance that waits, however long the queue of the other is', async () => {
    const [busy, patient] = [await startInstance(5000), await startInstance(5000)];
    const order: string[] = [];
    const work = (name: string) => async (): Promise<void> => {
      order.push(name);
      await new Promise((resolve) => setTimeout(resolve, 20));
    };
    const queue = Array.from({ length: 20 }, () => busy('KEY', work('busy')));
    await expect.poll(() => order.length, { interval: 5 }).toBeGreaterThan(0);
    const before = order.length;
    await patient('KEY', work('patient'));
    // The one that holds it now, and perhaps one that was let in while the other asked.
    expect(order.indexOf('patient') - before).toBeLessThanOrEqual(2);
    await Promise.all(queue);
  });
});
