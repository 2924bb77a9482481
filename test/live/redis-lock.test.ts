// The lock over all instances, on a real Redis.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type KeyLock, createKeyLock } from '../../src/coordination/key-lock.js';
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { gate, testKeyLock } from '../support/lock-contract.js';
import { PATIENT_MS, type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

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
  async function startInstance(waitMs = 10_000): Promise<KeyLock> {
    const shared = new RedisCommands({ url: redis.url, keyPrefix: 't:', commandTimeoutMs: PATIENT_MS });
    onTestFinished(() => shared.close());
    await expect.poll(() => shared.isUp()).toBe(true);
    return createKeyLock({ waitMs, shared });
  }

  testKeyLock(async (waitMs) => [await startInstance(waitMs), await startInstance(waitMs)]);

  test('of an instance that was killed ends by itself, and is not taken away before', async () => {
    const lock = await startInstance();
    const begun = performance.now();
    await client.set('t:{KEY}:lock', 'of somebody else', 'PX', 150);
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
    const [busy, patient] = [await startInstance(), await startInstance()];
    const order: string[] = [];
    const open = gate();
    const work = (name: string) => (): Promise<void> => {
      order.push(name);
      return open.passed;
    };
    const queue = Array.from({ length: 20 }, () => busy('KEY', work('busy')));
    await expect.poll(() => order).toEqual(['busy']);
    const turn = patient('KEY', work('patient'));
    await expect
      .poll(() => client.exists('t:{KEY}:wanted'), { message: 'it has said that it waits' })
      .toBe(1);
    open.pass();
    await turn;
    // Its entry lives for a second and is renewed: one other may come between.
    expect(order.indexOf('patient')).toBeLessThanOrEqual(2);
    await Promise.all(queue);
  });

  describe('reports since when no other client has held the key', () => {
    const freeSince = (lock: KeyLock): Promise<number> =>
      lock('KEY', (held) => Promise.resolve(held.freeSince));

    test('on another instance', async () => {
      const [one, other] = [await startInstance(), await startInstance()];
      await one('KEY', () => Promise.resolve());
      const released = performance.now();
      expect(await freeSince(other)).toBeLessThanOrEqual(performance.now());
      await one('KEY', () => Promise.resolve());
      expect(await freeSince(other)).toBeGreaterThan(released);
    });

    test('which is just now when its holder was killed', async () => {
      const lock = await startInstance();
      await client.set('t:{KEY}:held', 'held', 'PX', 20_000);
      const before = performance.now();
      expect(await freeSince(lock)).toBeGreaterThan(before);
    });

    test('which is long ago where nobody has left a trace', async () => {
      const lock = await startInstance();
      const before = performance.now();
      expect(await lock('NEW', (held) => Promise.resolve(held.freeSince))).toBeLessThan(before);
    });
  });
});
