// Mutual exclusion by key: a fair queue in this instance and, with Redis, a lock over all instances.
import { ServiceError } from '../errors.js';
import { untilDeadline } from '../cache/clock.js';
import type { IncomingMessage } from 'node:http';
import type { LockPlaces, Writer } from './lock-places.js';
import { LockQueue, type QueueEntry } from './lock-queue.js';
import type { AcquireRedisLock } from './redis-lock.js';

/** The state of a lock when it is granted. */
export interface LockGrant {
  /** No other client has held the key since (ms, by `performance.now()` of this process). */
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
 * answer; else the error of the work
 */
export type KeyLock = <T>(key: string, work: (grant: LockGrant) => Promise<T>, client?: string) => Promise<T>;

/** Reads, then works under the lock of the handle over all instances, with a read that still holds. */
export type HandleLock = <S, T>(handle: string, work: LockedWork<S, T>) => Promise<T>;

/** The lock of a key in this instance. */
interface LocalLock extends Pick<LockGrant, 'freeSince'> {
  release: () => void;
}

interface KeyLockOptions {
  /** Maximum time in the queue (ms). */
  waitMs: number;
  /** Where Redis is used: the lock over all instances. */
  acquireShared?: AcquireRedisLock;
}

/** Where Redis is configured nobody holds a lock without it. */
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

interface LockedWork<S, T> {
  req: IncomingMessage;
  /** Reads the state that the work depends on, with the caller's login; throws when that is refused. */
  read: () => Promise<S>;
  /** `assertHeld`: see LockGrant. */
  work: (state: S, assertHeld: () => void) => Promise<T>;
  /** The work that the Handle server itself makes atomic; undefined where that is not enough. */
  unlocked?: (state: S) => Promise<T | undefined>;
  /** Whether the Handle server has refused the login, where `work` does not throw that. */
  isRefused?: (result: T) => boolean;
}

interface LockAfterReadDeps {
  lock: KeyLock;
  places: LockPlaces;
  writerOf: (req: IncomingMessage) => Omit<Writer, 'prefix'>;
  keyOf: (handle: string) => string;
}

/**
 * Reads first and acquires the lock after that: a caller whose login the Handle server refuses gets no place in the
 * queue. Over plain http it refuses the write alone, and `LockPlaces` bounds what that costs. The state is read again
 * when another client has held the key since.
 */
export function createHandleLock({ lock, places, writerOf, keyOf }: LockAfterReadDeps): HandleLock {
  return async function lockAfterRead(handle, { req, read, work, unlocked, isRefused }) {
    const readAt = performance.now();
    const state = await read();
    const done = await unlocked?.(state);
    if (done !== undefined) return done;
    const key = keyOf(handle);
    const writer = { ...writerOf(req), prefix: key.slice(0, key.indexOf('/')) };
    const giveBack = places.take(writer);
    if (giveBack === undefined) throw busy();
    try {
      const locked = async ({ freeSince, assertHeld }: LockGrant) =>
        work(freeSince <= readAt ? state : await read(), assertHeld);
      const result = await lock(key, locked, writer.client);
      if (isRefused?.(result) === true) places.refuse(writer);
      return result;
    } catch (error) {
      if (isLoginRefused(error)) places.refuse(writer);
      throw error;
    } finally {
      giveBack();
    }
  };
}

const isLoginRefused = (error: unknown): boolean =>
  error instanceof ServiceError && [401, 403].includes(error.upstreamAnswer?.status ?? error.status);

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
