// Mutual exclusion by key: a fair queue in this instance and, with Redis, a lock across all instances.
import type { Cache } from '../../cache/cache.js';
import { systemClock, untilDeadline } from '../../cache/clock.js';
import type { Config } from '../../config/schema.js';
import type { ConfiguredServer } from '../../config/upstream-servers.js';
import { ServiceError } from '../../errors.js';
import { LockQueue, type QueueEntry } from './lock-queue.js';
import { type AcquireRedisLock, createRedisLock } from './redis-lock.js';

/** The state of a granted lock. */
export interface LockGrant {
  /**
   * Time since which surely no other client has held the lock (ms, `performance.now()`); Infinity if unknown.
   */
  freeSince: number;
  /**
   * Asserts, just before a write is sent, that the lock outlasts the write.
   *
   * @throws ServiceError LOCK_UNAVAILABLE when the lock may end before the Handle server responds
   */
  assertHeld: () => void;
}

/**
 * Runs the work under the lock of the key. `client` identifies the caller, for example by its login. The
 * queue is fair among clients, and no client can fill it.
 *
 * @throws ServiceError CONCURRENT_MODIFICATION when the queue is full or the wait times out; LOCK_UNAVAILABLE
 * when Redis does not reply; otherwise the error of the work
 */
export type KeyLock = <T>(key: string, work: (grant: LockGrant) => Promise<T>, client?: string) => Promise<T>;

/** The lock of a key in this instance. */
interface LocalLock extends Pick<LockGrant, 'freeSince'> {
  release: () => void;
}

interface KeyLockOptions {
  /** Maximum wait for the lock, in the queue and in Redis (ms). */
  waitMs: number;
  /** Acquires the lock across all instances; undefined without Redis. */
  acquireShared?: AcquireRedisLock | undefined;
}

interface LockSettings extends Pick<Config, 'v2' | 'redis'> {
  servers: readonly Pick<ConfiguredServer, 'writeTimeoutMs'>[];
}

/** Creates the lock of handles, which all instances on the same Redis share. */
export function createSharedLock(
  { v2, redis, servers }: LockSettings,
  { commands, era }: Pick<Cache, 'commands' | 'era'>,
): KeyLock {
  const writeMs = Math.max(0, ...servers.map(({ writeTimeoutMs }) => writeTimeoutMs));
  const options = { era, waitMs: redis.lockWaitMs, writeMs, clock: systemClock };
  const acquireShared = commands && createRedisLock({ redis: commands, ...options });
  return createKeyLock({ waitMs: v2.lockWaitMs, acquireShared });
}

/** Creates a key lock. If Redis is configured, no lock is granted without it. */
export function createKeyLock(options: KeyLockOptions): KeyLock {
  const { waitMs, acquireShared } = options;
  const queue = new LockQueue();

  return async function withKey(key, work, client = '') {
    const deadline = performance.now() + waitMs;
    const local = await acquireLocal(queue, key, { waitMs, client });
    try {
      if (acquireShared === undefined) {
        return await work({ freeSince: local.freeSince, assertHeld: () => undefined });
      }
      const lock = await acquireShared(key, deadline);
      if (lock === undefined) throw busy();
      try {
        return await work({
          freeSince: Math.max(local.freeSince, lock.freeSince),
          assertHeld: () => {
            lock.assertHeld();
          },
        });
      } finally {
        void lock.release();
      }
    } finally {
      local.release();
    }
  };
}

/**
 * Acquires the lock in this instance. @throws ServiceError CONCURRENT_MODIFICATION when the queue is full or
 * the wait times out
 */
async function acquireLocal(
  queue: LockQueue,
  key: string,
  { waitMs, client }: { waitMs: number; client: string },
): Promise<LocalLock> {
  let entry: QueueEntry = { client, grant: () => undefined };
  const granted = new Promise<number>((resolve) => {
    const grant = (freeMs: number): void => {
      resolve(performance.now() - freeMs);
    };
    entry = { client, grant };
  });
  if (!queue.enter(key, entry)) throw busy();
  const release = (): void => {
    queue.leave(key, entry);
  };
  try {
    return { freeSince: await untilDeadline(granted, waitMs, busy), release };
  } catch (error) {
    release();
    throw error;
  }
}

const busy = (): ServiceError =>
  new ServiceError('CONCURRENT_MODIFICATION', {
    detail: 'other clients are changing this handle; try again in a moment',
    retryAfterMs: 1000,
  });
