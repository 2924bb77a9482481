// The lock across instances, on a real Redis.
import { describe, expect, test } from 'vitest';
import { LOCK } from '../../src/write/redis-lock.js';
import { gate } from '../support/gate.js';
import { type KeyLock, lockOfInstance, testKeyLock } from '../support/lock-contract.js';
import { describeWithRedis } from '../support/redis-server.js';
import { useRedis } from '../support/use-redis.js';

describeWithRedis('Redis lock across instances', () => {
  const redis = useRedis();

  const startInstance = (waitMs = 10_000, writeMs?: number): Promise<KeyLock> =>
    lockOfInstance(redis.url, waitMs, writeMs);

  testKeyLock(async (waitMs) => [await startInstance(waitMs), await startInstance(waitMs)]);

  test.each([
    { version: 'this version', set: () => redis.client.set('t:{KEY}:lock', `token ${Date.now() + 150}`) },
    { version: 'version 0.3', set: () => redis.client.set('t:{KEY}:lock', 'token', 'PX', 150) },
  ])('of a killed instance of $version is not granted before it expires', async ({ set }) => {
    const lock = await startInstance();
    const begun = performance.now();
    await set();
    await lock('KEY', () => Promise.resolve());
    expect(performance.now() - begun).toBeGreaterThan(100);
  });

  test('is not released by its first holder after it expired and a different holder acquired it', async () => {
    const lock = await startInstance();
    await lock('KEY', async () => {
      await redis.client.set('t:{KEY}:lock', 'of somebody else', 'PX', 5000);
    });
    expect(await redis.client.get('t:{KEY}:lock')).toBe('of somebody else');
    await redis.client.del('t:{KEY}:lock');
  });

  test('is granted again to the token that holds it, even while a different instance waits', async () => {
    const ask = (token: string) =>
      redis.client.eval(LOCK, 3, 't:{A}:lock', 't:{A}:wanted', 't:{A}:held', token, 5000, `of ${token}`);
    expect(await ask('one')).toBe(0);
    expect(await ask('other')).toBe(-1);
    // The time since the last release is 0, because the holder may have written since its first request.
    expect(await ask('one')).toBe(0);
    expect(await ask('other')).toBe(-1);
    await redis.client.del('t:{A}:lock');
  });

  test('leaves no lock key in Redis after its release', async () => {
    const [one, other] = [await startInstance(), await startInstance()];
    await Promise.all([one('KEY', () => Promise.resolve()), other('KEY', () => Promise.resolve())]);
    await expect.poll(() => redis.client.keys('t:*:lock')).toEqual([]);
  });

  test('is granted to a waiting instance despite a long queue in the holding instance', async () => {
    const [busy, patient] = [await startInstance(), await startInstance()];
    const order: string[] = [];
    const held = gate();
    const work = (name: string) => (): Promise<void> => {
      order.push(name);
      return held.opened;
    };
    const queue = Array.from({ length: 20 }, () => busy('KEY', work('busy')));
    await expect.poll(() => order).toEqual(['busy']);
    const turn = patient('KEY', work('patient'));
    await expect
      .poll(() => redis.client.exists('t:{KEY}:wanted'), { message: 'it has said that it waits' })
      .toBe(1);
    held.open();
    await turn;
    // The waiting entry expires after a second and is renewed, so one other grant may come first.
    expect(order.indexOf('patient')).toBeLessThanOrEqual(2);
    await Promise.all(queue);
  });

  describe('freeSince', () => {
    const freeSince = (lock: KeyLock): Promise<number> =>
      lock('KEY', (held) => Promise.resolve(held.freeSince));
    const released = () => expect.poll(() => redis.client.exists('t:{KEY}:lock')).toBe(0);

    test('is the time at which a different instance released the lock', async () => {
      const [one, other] = [await startInstance(), await startInstance()];
      await one('KEY', () => Promise.resolve());
      const before = performance.now();
      expect(await freeSince(other)).toBeLessThanOrEqual(performance.now());
      await one('KEY', () => Promise.resolve());
      expect(await freeSince(other)).toBeGreaterThan(before);
    });

    test('is not before a release by an instance with a shorter upstream.writeTimeout', async () => {
      const [one, other] = [await startInstance(10_000, 10_000), await startInstance(10_000, 30_000)];
      const before = performance.now();
      await one('KEY', () => Promise.resolve());
      await released();
      expect(await freeSince(other)).toBeGreaterThan(before);
    });

    test('is before the lock was requested when it was released long ago', async () => {
      const lock = await startInstance();
      const releasedAt = Date.now() - 60_000;
      await redis.client.set('t:{KEY}:held', String(releasedAt), 'PX', 20_000);
      const before = performance.now();
      expect(await freeSince(lock)).toBeLessThan(before);
    });

    test('is the current time when the holder was killed, although the lock was released long before', async () => {
      const lock = await startInstance();
      const names = ['t:{KEY}:lock', 't:{KEY}:wanted', 't:{KEY}:held'];
      await redis.client.set('t:{KEY}:held', String(Date.now() - 60_000), 'PX', 20_000);
      await redis.client.eval(LOCK, 3, ...names, 'killed', 1, 'instance');
      const before = performance.now();
      expect(await freeSince(lock)).toBeGreaterThan(before);
    });

    test.each([
      ['holds it, and was killed', 'held'],
      ['released it', 'free'],
    ])(
      'is the current time when an instance of version 0.3 %s, whose trace has no time',
      async (_what, trace) => {
        const lock = await startInstance();
        await redis.client.set('t:{KEY}:held', trace, 'PX', 20_000);
        const before = performance.now();
        expect(await freeSince(lock)).toBeGreaterThan(before);
      },
    );

    test('is the current time when Redis has no record of a holder, which it may have lost', async () => {
      const lock = await startInstance();
      await lock('KEY', () => Promise.resolve());
      await redis.client.flushall();
      const before = performance.now();
      expect(await freeSince(lock)).toBeGreaterThan(before);
    });
  });
});
