// Lets one work at a time touch a key, in this process and, with Redis, over all instances.
import { randomUUID } from 'node:crypto';
import { ServiceError } from '../errors.js';
import { untilDeadline } from './deadline.js';
import type { RedisLink } from './redis-link.js';
import { redisName } from './redis-keys.js';
import { LOCK, RENEW_LOCK, UNLOCK } from './redis-scripts.js';

/** @throws ServiceError BUSY when the key is not free in time; else what the work throws */
export type KeyLock = <T>(key: string, work: () => Promise<T>) => Promise<T>;

export interface KeyLockOptions {
  /** How long a caller waits for its turn (ms). */
  waitMs: number;
  /** Where several workers share the machine: see `Peers` in the wiring. */
  takeTurn?: (key: string, waitMs: number) => Promise<(() => void) | undefined>;
  /** Where Redis is used. */
  shared?: { link: Pick<RedisLink, 'run'>; keyPrefix: string };
}

/** A lock in Redis outlives a holder that was killed by no more than this; a holder that works renews it. */
const LIFE_MS = 6000;
const RENEW_MS = 2000;
const POLL_MS = 4;

/**
 * In one process a chain of promises per key, with Redis additionally a token under the key, which
 * only its owner takes away. Redis is a helper, never a need: while it is away the lock holds within
 * each process only, and two instances that change one handle at the same moment may cross.
 */
export function createKeyLock(options: KeyLockOptions): KeyLock {
  const { waitMs, shared, takeTurn } = options;
  const queue = createQueue();
  const takeShared = shared === undefined ? undefined : createSharedLock(shared);

  return async function withKey(key, work) {
    const deadline = performance.now() + waitMs;
    const leaveQueue = await queue.enter(key, waitMs);
    const endTurn = await takeTurn?.(key, deadline - performance.now());
    const leave = (): void => {
      endTurn?.();
      leaveQueue();
    };
    try {
      if (takeTurn !== undefined && endTurn === undefined) throw busy();
      const release = await takeShared?.(key, deadline);
      try {
        return await work();
      } finally {
        await release?.();
      }
    } finally {
      leave();
    }
  };
}

/** Whoever enters waits for all who came before; one who gives up leaves its place to the next. */
function createQueue(): { enter: (key: string, waitMs: number) => Promise<() => void> } {
  const tails = new Map<string, Promise<void>>();
  return {
    async enter(key, waitMs) {
      const before = tails.get(key) ?? Promise.resolve();
      let leave = (): void => undefined;
      const mine = new Promise<void>((resolve) => {
        leave = resolve;
      });
      const tail = before.then(() => mine);
      tails.set(key, tail);
      void tail.then(() => {
        if (tails.get(key) === tail) tails.delete(key);
      });
      try {
        await untilDeadline(before, waitMs, busy);
      } catch (late) {
        leave();
        throw late;
      }
      return leave;
    },
  };
}

const busy = (): ServiceError =>
  new ServiceError('BUSY', { detail: 'others are changing this handle, try again in a moment' });

/** Takes the lock over all instances; gives the function that releases it. */
function createSharedLock({ link, keyPrefix }: NonNullable<KeyLockOptions['shared']>) {
  const instance = randomUUID();
  return async function takeShared(key: string, deadline: number): Promise<() => Promise<void>> {
    const names = [redisName(keyPrefix, key, 'lock'), redisName(keyPrefix, key, 'wanted')] as const;
    const token = randomUUID();
    for (;;) {
      const taken = await link.run('lock', (redis) =>
        redis.eval(LOCK, 2, ...names, token, LIFE_MS, instance),
      );
      // Undefined: Redis is away, and the chain of this process is all there is.
      if (taken === undefined) return () => Promise.resolve();
      if (taken === 1) break;
      if (performance.now() >= deadline) throw busy();
      await new Promise((resolve) => setTimeout(resolve, POLL_MS * (0.5 + Math.random())));
    }
    const renewing = setInterval(() => {
      void link.run('lock', (redis) => redis.eval(RENEW_LOCK, 1, names[0], token, LIFE_MS));
    }, RENEW_MS);
    return async () => {
      clearInterval(renewing);
      await link.run('lock', (redis) => redis.eval(UNLOCK, 1, names[0], token));
    };
  };
}
