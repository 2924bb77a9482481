// The contract of the handle lock, in one process and across instances.
import { expect, onTestFinished, test } from 'vitest';
import { gate } from './gate.js';
import { systemClock } from '../../src/clock.js';
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { type HandleLock, type Held, createHandleLock } from '../../src/write/lock.js';
import { type AcquireRedisLock, createRedisLock } from '../../src/write/redis-lock.js';
import { PATIENT_MS as REDIS_PATIENT_MS } from './redis-server.js';

/** A lock of which a single client runs the work. */
export type KeyLock = <T>(key: string, work: (held: Held) => Promise<T>) => Promise<T>;

export function createKeyLock({
  waitMs,
  acquireShared,
}: {
  waitMs: number;
  acquireShared?: AcquireRedisLock;
}): KeyLock {
  const lock: HandleLock = createHandleLock(waitMs, acquireShared);
  const client = { identity: undefined, network: '192.0.2.0/24' };
  return (key, work) => lock({ key, text: key, prefix: '' }, client, work);
}

/** Creates two views of the same lock, in one process or in two instances. */
export type MakeLocks = (waitMs: number) => Promise<[KeyLock, KeyLock]> | [KeyLock, KeyLock];

/** Lock timeout longer than any test; on a busy machine, forty grants can take seconds. */
const PATIENT_MS = 60_000;
const SHORT_MS = 100;

/** Creates the lock of an instance connected to Redis. */
export async function lockOfInstance(url: string, waitMs: number, writeMs = 1000): Promise<KeyLock> {
  const redis = new RedisCommands({ url, keyPrefix: 't:', commandTimeoutMs: REDIS_PATIENT_MS });
  onTestFinished(() => redis.close());
  await expect.poll(() => redis.isUp()).toBe(true);
  const era = () => ({ name: 'era', since: -Infinity });
  const options = { waitMs: PATIENT_MS, writeMs, clock: systemClock };
  const acquireShared = createRedisLock({ redis, era, ...options });
  return createKeyLock({ waitMs, acquireShared });
}

export function testKeyLock(make: MakeLocks): void {
  test('runs one task at a time per key', async () => {
    const locks = await make(PATIENT_MS);
    let inside = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside--;
    };
    await Promise.all(Array.from({ length: 40 }, (_, at) => locks[at % 2]!('KEY', work)));
    expect([most, inside]).toEqual([1, 0]);
  });

  test('runs tasks for different keys in parallel', async () => {
    const [one, other] = await make(PATIENT_MS);
    const held = gate();
    const first = one('KEY', () => held.opened);
    await other('OTHER', () => Promise.resolve());
    held.open();
    await first;
  });

  test('returns the result of the task and propagates its error', async () => {
    const [one, other] = await make(PATIENT_MS);
    expect(await one('KEY', () => Promise.resolve(7))).toBe(7);
    await expect(one('KEY', () => Promise.reject(new Error('work')))).rejects.toThrow('work');
    expect(await other('KEY', () => Promise.resolve(8))).toBe(8);
  });

  test('rejects a caller that waits too long with 503, without delaying the next caller', async () => {
    const [one, other] = await make(SHORT_MS);
    const held = gate();
    const begun = gate();
    const first = one('KEY', () => {
      begun.open();
      return held.opened;
    });
    await begun.opened;
    await expect(other('KEY', () => Promise.resolve())).rejects.toMatchObject({
      code: 'CONCURRENT_MODIFICATION',
      status: 503,
    });
    held.open();
    await first;
    expect(await other('KEY', () => Promise.resolve('next'))).toBe('next');
  });
}
