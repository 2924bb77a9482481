// The lock across instances, on a manual clock, with a Redis that responds, loses replies or is down.
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import type { RedisCommands } from '../../src/cache/redis/commands.js';
import type { Held } from '../../src/write/lock.js';
import { LOCK, RENEW_LOCK, UNLOCK, createRedisLock } from '../../src/write/redis-lock.js';
import { createKeyLock } from '../support/lock-contract.js';
import { type ManualClock, createManualClock, isSettled, settled } from '../support/manual-clock.js';
import { partial } from '../support/partial.js';

const REDIS_WAIT_MS = 5000;
const WRITE_MS = 30_000;
/** Maximum time that ioredis waits for a reply. */
const ANSWER_MS = 500;
const LOCK_UNAVAILABLE = { code: 'LOCK_UNAVAILABLE', status: 503, retryAfterSeconds: 1 };

/** `lost`: the command runs, but its reply is lost. `slow`: the reply is late. `away`: no command is sent. */
type State = 'up' | 'slow' | 'lost' | 'away';

/** A Redis with one lock. `done` lists the executed commands in order. */
class FakeRedis {
  readonly keyPrefix = 't:';
  /** Start of the era; undefined while this instance has not entered it. */
  since: number | undefined = -Infinity;
  readonly era = () => (this.since === undefined ? undefined : { name: 'era', since: this.since });
  /** When the current master was first seen; Infinity if unknown. */
  masterSince = (): number => -Infinity;
  state: State = 'up';
  holder: string | undefined;
  readonly done: string[] = [];
  lifeMs = 0;
  /** Time since the last release, by the clock of Redis (ms). */
  freeMs = 0;
  readonly #clock: ManualClock;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  async run<T>(_name: string, command: (redis: Redis) => Promise<T>, timeoutMs = 50): Promise<T | undefined> {
    if (this.state === 'away') return undefined;
    const answer = command({ eval: this.#eval } as unknown as Redis);
    if (this.state === 'up') return answer;
    await new Promise<void>((resolve) => this.#clock.after(Math.min(timeoutMs, ANSWER_MS), resolve));
    return this.state === 'slow' ? answer : undefined;
  }

  readonly #eval = (script: string, keys: number, ...args: (string | number)[]): Promise<number> => {
    const [token, ...others] = args.slice(keys) as [string, ...number[]];
    const isOwn = this.holder === token;
    if (script === LOCK) {
      this.done.push('lock');
      if (this.holder !== undefined && !isOwn) return Promise.resolve(-1);
      this.holder = token;
      this.lifeMs = others[0]!;
      return Promise.resolve(isOwn ? 0 : this.freeMs);
    }
    this.done.push(script === RENEW_LOCK ? 'renew' : 'unlock');
    if (script === UNLOCK && isOwn) this.holder = undefined;
    return Promise.resolve(isOwn ? 1 : 0);
  };
}

function start(waitMs = 60_000) {
  const clock = createManualClock();
  const redis = new FakeRedis(clock);
  const acquireShared = createRedisLock({
    ...{ redis: partial<RedisCommands>(redis), era: redis.era, clock },
    ...{ waitMs: REDIS_WAIT_MS, writeMs: WRITE_MS },
  });
  return { clock, redis, acquireShared, lock: createKeyLock({ waitMs, acquireShared }) };
}

/** Holds the lock until `end` is called. */
async function hold({ lock }: Pick<ReturnType<typeof start>, 'lock'>) {
  let end = (): void => undefined;
  const grant = await new Promise<Held>((resolve, reject) => {
    lock('KEY', (held) => {
      resolve(held);
      return new Promise<void>((ended) => {
        end = ended;
      });
    }).catch(reject);
  });
  return { grant, end };
}

describe('Redis lock', () => {
  describe.each<State>(['away', 'lost'])('while Redis does not respond (%s)', (state) => {
    test('fails with 503 and Retry-After after redis.lockWait, without running the task', async () => {
      const { clock, redis, lock } = start();
      redis.state = state;
      let runs = 0;
      const locked = lock('KEY', () => Promise.resolve(++runs));
      locked.catch(() => undefined);
      await clock.pass(REDIS_WAIT_MS - 1);
      expect(await isSettled(locked)).toBe(false);
      await clock.pass(50);
      await expect(locked).rejects.toMatchObject(LOCK_UNAVAILABLE);
      expect(runs).toBe(0);
    });

    test('is granted as soon as Redis returns', async () => {
      const { clock, redis, lock } = start();
      redis.state = state;
      const locked = lock('KEY', () => Promise.resolve('done'));
      await clock.pass(REDIS_WAIT_MS - 600);
      redis.state = 'up';
      await clock.pass(590);
      expect(await locked).toBe('done');
    });
  });

  test('is requested once this instance has entered the era, because no write may be sent under an earlier lock', async () => {
    const world = start();
    const { clock, redis } = world;
    redis.since = undefined;
    const holding = hold(world);
    await clock.pass(500);
    expect(redis.done).toEqual([]);
    redis.since = clock.monotonic();
    await clock.pass(50);
    const { grant, end } = await holding;
    grant.assertHeld!();
    end();
  });

  test('is requested again after a lost reply, and granted to the same token', async () => {
    const { clock, redis, lock } = start();
    const run = redis.run.bind(redis);
    let lost = 0;
    redis.run = async (name, command, timeoutMs) => {
      const answer = await run(name, command, timeoutMs);
      return lost++ === 0 ? undefined : answer;
    };
    const locked = lock('KEY', () => Promise.resolve('done'));
    await clock.pass(100);
    expect(await locked).toBe('done');
    expect(redis.done).toEqual(['lock', 'lock', 'unlock']);
  });

  test('is released when Redis returns if its request failed after a lost reply', async () => {
    const { clock, redis, lock } = start();
    redis.state = 'lost';
    const locked = lock('KEY', () => Promise.resolve());
    const refused = expect(locked).rejects.toMatchObject(LOCK_UNAVAILABLE);
    await clock.pass(REDIS_WAIT_MS + 100);
    await refused;
    expect(redis.done).toContain('lock');
    redis.state = 'up';
    await clock.pass(1000);
    expect(redis.holder).toBeUndefined();
  });

  test('repeats its release until Redis responds or the lock has expired', async () => {
    for (const [awayMs, isReleased] of [
      [20_000, true],
      [100_000, false],
    ] as const) {
      const world = start();
      const { clock, redis } = world;
      const { end } = await hold(world);
      redis.state = 'away';
      end();
      await clock.pass(awayMs);
      redis.state = 'up';
      await clock.pass(1000);
      expect(redis.holder === undefined).toBe(isReleased);
    }
  });

  test('is released after it was renewed for longer than its lifetime', async () => {
    const world = start();
    const { clock, redis } = world;
    const { end } = await hold(world);
    await clock.pass(redis.lifeMs + 2000);
    end();
    await settled();
    expect(redis.holder).toBeUndefined();
  });

  test('does not time out while a different instance holds it, because Redis responds', async () => {
    const { clock, redis, lock } = start();
    redis.holder = 'another';
    const locked = lock('KEY', () => Promise.resolve('done'));
    await clock.pass(4 * REDIS_WAIT_MS);
    redis.holder = undefined;
    await clock.pass(100);
    expect(await locked).toBe('done');
  });

  test.each([
    ['for as long as Redis reports, less its drift and a step of its clock', 3000, {}],
    ['for no time if its clock may have been set ahead by all of it', 5000, { freeMs: 1100 }],
    ['since the era of Redis began', 4500, { since: 4500 }],
    ['since its master in a cluster took over', 4500, { masterSince: () => 4500 }],
  ])('has been free %s', async (_when, expected, state) => {
    const { clock, redis, acquireShared } = start();
    await clock.pass(5000);
    Object.assign(redis, { freeMs: 3300, ...state });
    const lock = await acquireShared('KEY', Infinity);
    expect(lock?.freeSince).toBeCloseTo(expected, 6);
    await lock?.release();
  });

  test('has been free at no known time if the era has ended before the reply', async () => {
    const { clock, redis, acquireShared } = start();
    redis.state = 'slow';
    const acquiring = acquireShared('KEY', Infinity);
    redis.since = undefined;
    await clock.pass(ANSWER_MS);
    const lock = await acquiring;
    expect(lock?.freeSince).toBe(Infinity);
    redis.state = 'up';
    await lock?.release();
  });

  describe('during a write', () => {
    test('permits sending while it is renewed', async () => {
      const world = start();
      const { grant, end } = await hold(world);
      for (let at = 0; at < 60; at++) {
        grant.assertHeld!();
        await world.clock.pass(1000);
      }
      end();
    });

    test('prevents sending after the instance was paused longer than the maximum renewal age', async () => {
      const clock = createManualClock();
      let stoodMs = 0;
      const stopping = { ...clock, monotonic: () => clock.monotonic() + stoodMs };
      const redis = new FakeRedis(clock);
      const options = {
        ...{ redis: partial<RedisCommands>(redis), era: redis.era, clock: stopping },
        ...{ waitMs: REDIS_WAIT_MS, writeMs: WRITE_MS },
      };
      const lock = createKeyLock({ waitMs: 60_000, acquireShared: createRedisLock(options) });
      const { grant, end } = await hold({ lock });
      stoodMs = 4999;
      grant.assertHeld!();
      stoodMs = 5000;
      expect(() => {
        grant.assertHeld!();
      }).toThrow(expect.objectContaining(LOCK_UNAVAILABLE) as Error);
      end();
    });

    test('prevents sending when Redis does not respond to renewals', async () => {
      const world = start();
      const { grant, end } = await hold(world);
      world.redis.state = 'lost';
      await world.clock.pass(4900);
      grant.assertHeld!();
      await world.clock.pass(200);
      expect(grant.assertHeld).toThrow(expect.objectContaining(LOCK_UNAVAILABLE) as Error);
      end();
    });

    test('prevents sending once a renewal finds the lock lost, even if a former master returns with it', async () => {
      const world = start();
      const { grant, end } = await hold(world);
      const { holder } = world.redis;
      for (const found of ['another', holder]) {
        world.redis.holder = found;
        await world.clock.pass(2000);
        expect(grant.assertHeld).toThrow(expect.objectContaining(LOCK_UNAVAILABLE) as Error);
      }
      end();
    });

    test('prevents sending after a restart or failover of Redis, although a renewal finds the lock', async () => {
      const world = start();
      const { grant, end } = await hold(world);
      await world.clock.pass(100);
      for (const since of [undefined, world.clock.monotonic()]) {
        world.redis.since = since;
        expect(grant.assertHeld).toThrow(expect.objectContaining(LOCK_UNAVAILABLE) as Error);
      }
      await world.clock.pass(2000);
      expect(world.redis.done).toContain('renew');
      expect(grant.assertHeld).toThrow(expect.objectContaining(LOCK_UNAVAILABLE) as Error);
      end();
    });

    test('outlives the write timeout in Redis, despite clock drift and steps', async () => {
      const world = start();
      const { end } = await hold(world);
      // 5 s is the maximum renewal age.
      expect(world.redis.lifeMs).toBeGreaterThanOrEqual(1.1 * (WRITE_MS + 5000) + 1000);
      end();
    });

    test.each([
      ['grant', 0],
      ['renewal', 2000],
    ])('permits sending for 5 s after a %s was requested, however late the reply', async (_what, at) => {
      const world = start();
      if (at === 0) world.redis.state = 'slow';
      const holding = hold(world);
      await world.clock.pass(ANSWER_MS);
      const { grant, end } = await holding;
      world.redis.state = 'slow';
      await world.clock.pass(at);
      world.redis.state = 'away';
      await world.clock.pass(at + 4999 - world.clock.monotonic());
      grant.assertHeld!();
      await world.clock.pass(1);
      expect(grant.assertHeld).toThrow(expect.objectContaining(LOCK_UNAVAILABLE) as Error);
      end();
    });

    test('prevents sending after its release, which stops the renewals', async () => {
      const world = start();
      const { grant, end } = await hold(world);
      end();
      await settled();
      expect(grant.assertHeld).toThrow(expect.objectContaining(LOCK_UNAVAILABLE) as Error);
      await world.clock.pass(10_000);
      expect(world.redis.done).toEqual(['lock', 'unlock']);
    });
  });
});
