// The lock of a handle for a write: a fair queue in this instance and, with Redis, a lock across all instances.
import { LRUCache } from 'lru-cache';
import { boundedMap } from '../cache/bounded-map.js';
import type { Cache } from '../cache/cache.js';
import { systemClock, untilDeadline } from '../clock.js';
import type { Config } from '../config/schema.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { type AcquireRedisLock, createRedisLock } from './redis-lock.js';

/** The state of a granted lock. */
export interface Held {
  /** Time since which surely no other client has held the lock (ms, `performance.now()`); Infinity if unknown. */
  freeSince: number;
  /**
   * Asserts, just before a write is sent, that the lock outlasts the write. Undefined without Redis, where a lock
   * ends only with its work.
   *
   * @throws ServiceError LOCK_UNAVAILABLE when the lock may end before the Handle server responds
   */
  assertHeld?: (() => void) | undefined;
  /** Records a refused login. Call it if the work does not throw the refusal. */
  onRefused: () => void;
}

/**
 * Runs work under the lock of the handle, which all instances share. Read the record with the caller's login
 * before: a caller whose login is refused must get no place in the queue. Over plain HTTP the server refuses
 * only the write, and the queue bounds the cost of such writes.
 *
 * @throws ServiceError CONCURRENT_MODIFICATION when the queue is full or the wait times out; LOCK_UNAVAILABLE
 * when Redis does not reply; otherwise the error of the work
 */
export type HandleLock = <T>(
  handle: HandleRef,
  /** The identity of its login, if any, and its network. */
  client: { identity: string | undefined; network: string },
  work: (held: Held) => Promise<T>,
) => Promise<T>;

export function createSharedLock(
  { v2, redis }: Config,
  servers: readonly ServerConfig[],
  { commands, era }: Cache,
): HandleLock {
  const writeMs = Math.max(0, ...servers.map(({ writeTimeoutMs }) => writeTimeoutMs));
  const options = { era, waitMs: redis.lockWaitMs, writeMs, clock: systemClock };
  return createHandleLock(v2.lockWaitMs, commands && createRedisLock({ redis: commands, ...options }));
}

/**
 * Creates a handle lock. If Redis is configured, no lock is granted without it. `waitMs`: maximum wait for the lock, in
 * the queue and in Redis; `acquireShared`: acquires the lock across all instances, undefined without Redis.
 */
export function createHandleLock(waitMs: number, acquireShared?: AcquireRedisLock): HandleLock {
  const queue = new LockQueue(() => performance.now());
  return async function lock({ key, prefix }, { identity, network }, work) {
    const writer = { client: identity ?? network, network, prefix };
    const deadline = performance.now() + waitMs;
    const grant: { freeSince?: number; notify?: () => void } = {};
    const leave = queue.enter(key, writer, (freeSince) => {
      grant.freeSince = freeSince;
      grant.notify?.();
    });
    if (leave === undefined) throw busy();
    const onRefused = (): void => queue.refuse(writer);
    try {
      // A free lock is granted immediately, and needs no timer.
      if (grant.freeSince === undefined)
        await untilDeadline(new Promise<void>((notify) => (grant.notify = notify)), waitMs, busy);
      const { freeSince = Infinity } = grant;
      if (acquireShared === undefined) return await work({ freeSince, onRefused });
      const shared = await acquireShared(key, deadline);
      if (shared === undefined) throw busy();
      try {
        const { assertHeld } = shared;
        return await work({ freeSince: Math.max(freeSince, shared.freeSince), assertHeld, onRefused });
      } finally {
        void shared.release();
      }
    } catch (error) {
      if (isLoginRefused(error)) onRefused();
      throw error;
    } finally {
      leave();
    }
  };
}

const isLoginRefused = (error: unknown): boolean =>
  error instanceof ServiceError && [401, 403].includes(error.upstreamAnswer?.status ?? error.status);

const busy = (): ServiceError =>
  new ServiceError('CONCURRENT_MODIFICATION', {
    detail: 'other clients are changing this handle; try again in a moment',
    retryAfterMs: 1000,
  });

interface Writer {
  /** The identity of the login or, without a login, the network. */
  client: string;
  network: string;
  /** Prefix of the written handle. */
  prefix: string;
}

/** Grants the lock. `freeSince`: the time since which no client has held it. */
type Grant = (freeSince: number) => void;

/** Bounds of a queue, far above the concurrent requests of a client for one handle. */
const MAX_WAITERS_OF_CLIENT = 128;
const MAX_WAITERS = 1024;
/** Maximum waiters of a network on all handles of a prefix: a quarter of a queue, because a network may use many logins. */
const MAX_WAITERS_OF_NETWORK = 256;

/** Time for which a login counts as refused (ms). A write that the server refuses holds the lock while others wait. */
const REFUSED_FOR_MS = 10_000;
const MAX_REFUSED = 10_000;

/** Maximum number of stored release times. A read from before the last dropped release counts as outdated. */
const MAX_RELEASES = 4096;

/**
 * Grants one lock at a time per key, to each waiting client in rotation, regardless of its number of waiters.
 * Bounds the waiters of a client, a network and a key; a recently refused login may have a single one.
 */
export class LockQueue {
  /** The waiters by key and client. The first waiter of the first client holds the lock. */
  readonly #queues = new Map<string, Map<string, Grant[]>>();
  /** The number of waiters of each login and each network under a prefix, and of each key. */
  readonly #waiters = new Map<string, number>();
  readonly #refused: LRUCache<string, true>;
  /** Release times by key, oldest first (ms). */
  readonly #releases = new LRUCache<string, number>({
    max: MAX_RELEASES,
    dispose: (time, _key, reason) => {
      if (reason === 'evict') this.#releasedBefore = time;
    },
  });
  #releasedBefore: number;

  /** `now`: any clock (ms). */
  constructor(private readonly now: () => number) {
    this.#releasedBefore = now();
    this.#refused = boundedMap(MAX_REFUSED, { ttl: REFUSED_FOR_MS, now });
  }

  /**
   * Adds a waiter, and grants it the lock if the queue was empty. Returns the function that removes the waiter
   * or releases its lock; undefined if the writer may not wait.
   */
  enter(key: string, writer: Writer, grant: Grant): (() => void) | undefined {
    const { client, network, prefix } = writer;
    const queue = this.#queues.get(key) ?? new Map<string, Grant[]>();
    const own = queue.get(client) ?? [];
    const bounds: [name: string, max: number][] = [
      [loginKeyOf(writer), this.#refused.has(loginKeyOf(writer)) ? 1 : Infinity],
      [`network ${prefix} ${network}`, MAX_WAITERS_OF_NETWORK],
      [`key ${key}`, MAX_WAITERS],
    ];
    const isFull = bounds.some(([name, max]) => (this.#waiters.get(name) ?? 0) >= max);
    if (isFull || own.length >= MAX_WAITERS_OF_CLIENT) return undefined;
    for (const [name] of bounds) this.#count(name, 1);
    own.push(grant);
    this.#queues.set(key, queue.set(client, own));
    if (queue.size === 1 && own.length === 1) grant(this.#releases.peek(key) ?? this.#releasedBefore);
    return () => {
      for (const [name] of bounds) this.#count(name, -1);
      this.#remove(key, client, grant);
    };
  }

  /** Records that the Handle server has refused a write with 401 or 403. */
  refuse(writer: Writer): void {
    this.#refused.set(loginKeyOf(writer), true);
  }

  #count(name: string, change: number): void {
    const count = (this.#waiters.get(name) ?? 0) + change;
    if (count > 0) this.#waiters.set(name, count);
    else this.#waiters.delete(name);
  }

  #remove(key: string, client: string, grant: Grant): void {
    const queue = this.#queues.get(key);
    const own = queue?.get(client);
    if (queue === undefined || own === undefined) return;
    const isHolder = holderOf(queue) === grant;
    own.splice(own.indexOf(grant), 1);
    // The client that held the lock goes to the end of the rotation.
    if (isHolder || own.length === 0) queue.delete(client);
    if (isHolder && own.length > 0) queue.set(client, own);
    const next = holderOf(queue);
    if (next === undefined) {
      this.#queues.delete(key);
      this.#releases.set(key, this.now());
    } else if (isHolder) next(this.now());
  }
}

const holderOf = (queue: ReadonlyMap<string, readonly Grant[]>): Grant | undefined =>
  queue.values().next().value?.[0];

const loginKeyOf = ({ client, prefix }: Writer): string => `login ${prefix} ${client}`;
