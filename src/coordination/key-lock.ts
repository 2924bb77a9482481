// Lets one work at a time touch a key, in this process and, with Redis, over all instances.
import { randomUUID } from 'node:crypto';
import { ServiceError } from '../errors.js';
import { untilDeadline } from '../cache/deadline.js';
import { LockQueue, type QueueEntry } from './lock-queue.js';
import type { RedisCommands } from '../cache/redis/commands.js';
import { LOCK, RENEW_LOCK, UNLOCK } from './scripts.js';

/** What a work knows when its turn has come. */
export interface LockGrant {
  /** Nobody else has held the key since (ms, by `performance.now()` of this process). */
  freeSince: number;
}

/**
 * Does the work while nobody else holds the key. `holder` is the caller who wants it, an identity for example:
 * the turns are shared fairly among holders, and none of them can fill the queue.
 *
 * @throws ServiceError BUSY when the queue is full or the turn does not come in time; else what the work throws
 */
export type KeyLock = <T>(key: string, work: (held: LockGrant) => Promise<T>, holder?: string) => Promise<T>;

/** A turn that has come. */
export interface LockTurn extends LockGrant {
  end: () => void;
}

/** Waits for a turn; undefined when the queue is full or the turn does not come in time. */
export type TakeTurn = (
  key: string,
  wish: { waitMs: number; holder: string },
) => Promise<LockTurn | undefined>;

export interface KeyLockOptions {
  /** How long a caller waits for its turn (ms). */
  waitMs: number;
  /** Where several workers share the machine: the queue of all of them. */
  takeTurn?: TakeTurn;
  /** Where Redis is used. */
  shared?: Pick<RedisCommands, 'run' | 'keyPrefix'>;
}

/** A lock in Redis outlives a holder that was killed by no more than this; a holder that works renews it. */
const LIFE_MS = 6000;
const RENEW_MS = 2000;
const POLL_MS = 4;
/** Redis remembers for this long that a key was held: a read takes less. */
const TRACE_MS = 30_000;

/**
 * On one machine a queue per key, with Redis additionally a token under the key, which only its owner
 * takes away. Redis is a helper, never a need: while it is away the lock holds within each machine
 * only, and two instances that change one handle at the same moment may cross.
 */
export function createKeyLock(options: KeyLockOptions): KeyLock {
  const { waitMs, shared, takeTurn = createLocalQueue() } = options;
  const takeShared = shared === undefined ? undefined : createSharedLocks(shared);

  return async function withKey(key, work, holder = '') {
    const deadline = performance.now() + waitMs;
    const turn = await takeTurn(key, { waitMs, holder });
    if (turn === undefined) throw busy();
    try {
      const lease = await takeShared?.(key, deadline);
      try {
        return await work({ freeSince: Math.max(turn.freeSince, lease?.freeSince ?? -Infinity) });
      } finally {
        await lease?.release();
      }
    } finally {
      turn.end();
    }
  };
}

export interface LockedWork<S, T> {
  holder: string;
  /** Reads what the work depends on, with the caller's login; throws when that is refused. */
  read: () => Promise<S>;
  work: (state: S) => Promise<T>;
}

/**
 * Reads first and takes the lock after: a caller whose login the Handle server refuses gets no place in
 * the queue. What was read still holds when nobody else held the key since; otherwise it is read again.
 */
export async function lockAfterRead<S, T>(
  lock: KeyLock,
  key: string,
  { holder, read, work }: LockedWork<S, T>,
): Promise<T> {
  const begun = performance.now();
  const state = await read();
  return lock(key, async ({ freeSince }) => work(freeSince <= begun ? state : await read()), holder);
}

/** The queue of this process. */
function createLocalQueue(): TakeTurn {
  const queue = new LockQueue();
  return async function takeTurn(key, { waitMs, holder }) {
    let place: QueueEntry = { holder, grant: () => undefined };
    const begun = new Promise<number>((resolve) => {
      const grant = (freeMs: number): void => {
        resolve(performance.now() - freeMs);
      };
      place = { holder, grant };
    });
    if (!queue.enter(key, place)) return undefined;
    const end = (): void => {
      queue.leave(key, (other) => other === place);
    };
    try {
      return { freeSince: await untilDeadline(begun, waitMs, busy), end };
    } catch (late) {
      end();
      throw late;
    }
  };
}

const busy = (): ServiceError =>
  new ServiceError('BUSY', {
    detail: 'others are changing this handle, try again in a moment',
    retryAfterMs: 1000,
  });

interface SharedLock extends LockGrant {
  release: () => Promise<void>;
}

/** Takes the lock over all instances. */
function createSharedLocks(link: NonNullable<KeyLockOptions['shared']>) {
  const instance = randomUUID();
  return async function takeShared(key: string, deadline: number): Promise<SharedLock> {
    const [lock, wanted, trace] = ['lock', 'wanted', 'held'].map((part) =>
      lockKeyName(link.keyPrefix, key, part),
    );
    const names = [lock ?? '', wanted ?? '', trace ?? ''] as const;
    const token = randomUUID();
    let freeMs: number | undefined = -1;
    while (freeMs === -1) {
      freeMs = (await link.run('lock', (redis) =>
        redis.eval(LOCK, 3, ...names, token, LIFE_MS, instance, TRACE_MS),
      )) as number | undefined;
      // Undefined: Redis is away, and the queue of this machine is all there is.
      if (freeMs === undefined) return { freeSince: -Infinity, release: () => Promise.resolve() };
      if (freeMs === -1) await waitBeforeRetry(deadline);
    }
    const freeSince = performance.now() - freeMs;
    const [lockName, , traceName] = names;
    const renewing = setInterval(() => {
      void link.run('lock', (redis) =>
        redis.eval(RENEW_LOCK, 2, lockName, traceName, token, LIFE_MS, TRACE_MS),
      );
    }, RENEW_MS);
    const release = async (): Promise<void> => {
      clearInterval(renewing);
      await link.run('lock', (redis) => redis.eval(UNLOCK, 2, lockName, traceName, token, TRACE_MS));
    };
    return { freeSince, release };
  };
}

async function waitBeforeRetry(deadline: number): Promise<void> {
  if (performance.now() >= deadline) throw busy();
  await new Promise((resolve) => setTimeout(resolve, POLL_MS * (0.5 + Math.random())));
}

/** Braces name the part that decides the slot in a Redis Cluster, so all names of one key live together. */
function lockKeyName(keyPrefix: string, key: string, part: string): string {
  return `${keyPrefix}{${key.replace(/[{}%]/g, encodeURIComponent)}}:${part}`;
}
