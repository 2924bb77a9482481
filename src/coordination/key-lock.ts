// Mutual exclusion by key: a fair queue in this instance and, with Redis, a lock over all instances.
import { ServiceError } from '../errors.js';
import { untilDeadline } from '../cache/clock.js';
import { LockQueue, type QueueEntry } from './lock-queue.js';
import type { AcquireRedisLock } from './redis-lock.js';

/** The state of a lock when it is granted. */
export interface LockGrant {
  /** Time since when no other client has held the key (ms, `performance.now()` of this process). */
  freeSince: number;
  /**
   * Called just before a write is sent.
   *
   * @throws ServiceError NOT_LOCKED when the lock may end before the Handle server has answered
   */
  assertHeld: () => void;
}

/**
 * Runs the work while it holds the lock of the key. `client` identifies the caller, by its login for example: the queue
 * is fair among clients, and none of them can fill it.
 *
 * @throws ServiceError BUSY when the queue is full or the lock is not granted in time; NOT_LOCKED when Redis does not
 * answer; otherwise the error of the work
 */
export type KeyLock = <T>(key: string, work: (grant: LockGrant) => Promise<T>, client?: string) => Promise<T>;

/** The lock of a key in this instance. */
interface LocalLock extends Pick<LockGrant, 'freeSince'> {
  release: () => void;
}

interface KeyLockOptions {
  /** Maximum time in the queue (ms). */
  waitMs: number;
  /** The lock over all instances; undefined without Redis. */
  acquireShared?: AcquireRedisLock;
}

/** If Redis is configured, no lock is granted without it. */
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

/** @throws ServiceError BUSY when the queue is full or the lock is not granted in time */
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
  new ServiceError('BUSY', {
    detail: 'others are changing this handle, try again in a moment',
    retryAfterMs: 1000,
  });
