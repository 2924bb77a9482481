// A lock across all instances: a Redis key with a token and its end, which its owner renews and deletes.
import type { Cache } from '../cache/cache.js';
import { type Clock, pause, repeat } from '../clock.js';
import { MAX_DRIFT, MAX_REDIS_CLOCK_STEP_MS } from '../cache/coherence/lease.js';
import type { RedisCommands } from '../cache/redis/commands.js';
import { ServiceError } from '../errors.js';

const RENEW_MS = 2000;
/** Maximum age of the last renewal when a write is sent, which tolerates two failed renewals. */
const MAX_RENEWAL_AGE_MS = 5000;
const POLL_MS = 4;
/** Polling interval while Redis does not reply. */
const AWAY_POLL_MS = 25;
/** Minimum TTL of a recorded lock release (ms); longer than a read takes, so that it is usually found. */
const TRACE_MS = 30_000;

/**
 * Reads the holder of the lock, and sets it. The end is in the value, because Redis may evict a key with a TTL, and
 * would then grant the lock twice. The locks of version 0.3 have a TTL, and only the token as value.
 */
const HOLDER = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local holder = redis.call('GET', KEYS[1])
local token, ends = string.match(holder or '', '^(%S+) (%d+)$')
if token then holder = tonumber(ends) > now and token end
local function text(number) return string.format('%.0f', number) end
local function hold(token, lifeMs)
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], token .. ' ' .. text(now + lifeMs))
end`;

/**
 * Acquires a lock. KEYS: the lock, the next instance, the trace. ARGV: token, lock TTL (ms), instance. Returns -1 if a
 * different token holds the lock, otherwise the time since its last release (ms). An instance that finds the lock
 * taken registers as the next one, so that an instance with a long queue cannot monopolise it. The owner may repeat
 * the request, because a reply may be lost. The trace is the time of the release: its remaining TTL would depend on
 * `upstream.writeTimeout` of the instance that released. A missing trace counts as a release just now, because a
 * killed owner may have been the last writer, or Redis may have lost it, and so does one of version 0.3, which has no
 * time. The first write is a deletion, because a full Redis (noeviction) refuses a script whose first write needs memory.
 */
export const LOCK = `${HOLDER}
local wanted = redis.call('GET', KEYS[2])
if holder ~= ARGV[1] then
  if holder then
    if wanted then return -1 end
    redis.call('DEL', KEYS[2])
    redis.call('SET', KEYS[2], ARGV[3], 'PX', 1000)
    return -1
  end
  if wanted and wanted ~= ARGV[3] then return -1 end
end
local releasedAt = tonumber(redis.call('GET', KEYS[3]) or '') or now
redis.call('DEL', KEYS[2], KEYS[3])
hold(ARGV[1], ARGV[2])
return math.max(0, now - releasedAt)`;

/** Renews a lock. KEYS: the lock. ARGV: token, lock TTL (ms). Returns 0 if the token does not hold it. */
export const RENEW_LOCK = `${HOLDER}
if holder ~= ARGV[1] then return 0 end
hold(ARGV[1], ARGV[2])
return 1`;

/** Releases a lock if the token holds it. KEYS: the lock, its trace. ARGV: token, trace TTL (ms). */
export const UNLOCK = `${HOLDER}
if holder ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], text(now), 'PX', ARGV[2])
return 1`;

interface RedisLockOptions {
  redis: RedisCommands;
  era: Cache['era'];
  /** Maximum time without a reply from Redis (ms). */
  waitMs: number;
  /** Write timeout of the Handle server (ms). The lock of a killed owner lasts at least this long. */
  writeMs: number;
  clock: Clock;
}

/**
 * Polls until the lock is acquired; resolves to undefined after `deadline` (monotonic, ms).
 *
 * @throws ServiceError LOCK_UNAVAILABLE when Redis does not reply for `waitMs`
 */
export type AcquireRedisLock = (key: string, deadline: number) => Promise<RedisLock | undefined>;

export function createRedisLock(options: RedisLockOptions): AcquireRedisLock {
  const { waitMs, clock } = options;
  const instance = clock.randomId();
  return async function acquire(key, deadline) {
    const lock = new RedisLock(options, key, instance);
    let answeredAt = clock.monotonic();
    for (;;) {
      const leftMs = answeredAt + waitMs - clock.monotonic();
      if (leftMs <= 0) {
        void lock.release();
        throw notLocked('Redis does not answer in time');
      }
      const answer = await lock.request(leftMs);
      if (answer === 'granted') return lock;
      if (answer === 'taken') {
        answeredAt = clock.monotonic();
        if (answeredAt >= deadline) return undefined;
      }
      await pause(clock, answer === 'taken' ? POLL_MS * (0.5 + Math.random()) : AWAY_POLL_MS);
    }
  };
}

class RedisLock {
  /** See Held. */
  freeSince = Infinity;
  readonly #token: string;
  /** TTL of the lock in Redis. It covers a write sent at the last moment, even if clocks drift and step. */
  readonly #lifeMs: number;
  readonly #traceMs: number;
  /** Undefined until a request has been sent. */
  #names: ReturnType<typeof lockNames> | undefined;
  /** Send time of the last request, even if unconfirmed, because Redis may have executed it. */
  #requestedAt = -Infinity;
  /** Send time of the granted request. */
  #grantedAt = -Infinity;
  /** Send time of the last confirmed request. */
  #renewedAt = -Infinity;
  #cancelRenewal: () => void = () => undefined;

  constructor(
    private readonly options: RedisLockOptions,
    private readonly key: string,
    private readonly instance: string,
  ) {
    this.#token = options.clock.randomId();
    this.#lifeMs = Math.ceil(MAX_DRIFT * (options.writeMs + MAX_RENEWAL_AGE_MS) + MAX_REDIS_CLOCK_STEP_MS);
    this.#traceMs = this.#lifeMs + TRACE_MS;
  }

  /** Requests the lock. Resolves to undefined if Redis is unavailable, has no known era, or does not reply within `timeoutMs`. */
  async request(timeoutMs: number): Promise<'granted' | 'taken' | undefined> {
    const { redis, era, clock } = this.options;
    // No write would be sent under this lock.
    if (era() === undefined) return undefined;
    const sentAt = clock.monotonic();
    const freeMs = await redis.run(
      'lock',
      (client) => {
        const names = lockNames(redis.keyPrefix, this.key);
        this.#names = names;
        this.#requestedAt = sentAt;
        const args = [this.#token, this.#lifeMs, this.instance];
        return client.eval(LOCK, 3, names.lock, names.next, names.trace, ...args) as Promise<number>;
      },
      timeoutMs,
    );
    const names = this.#names;
    if (freeMs === undefined || names === undefined) return undefined;
    if (freeMs === -1) return 'taken';
    // The clock of Redis may run faster, and may have been set ahead since the release.
    const surelyFreeMs = Math.max(0, freeMs / MAX_DRIFT - MAX_REDIS_CLOCK_STEP_MS);
    // A different Redis, or a different master of this lock, may have granted the lock to others before.
    const since = Math.max(era()?.since ?? Infinity, redis.masterSince(names.lock));
    this.freeSince = Math.max(clock.monotonic() - surelyFreeMs, since);
    this.#grantedAt = this.#renewedAt = sentAt;
    this.#cancelRenewal = repeat(clock, RENEW_MS, () => this.#renew());
    return 'granted';
  }

  /**
   * Asserts, just before a write is sent, that the lock outlasts the write. @throws ServiceError
   * LOCK_UNAVAILABLE when the lock may end before the response, or when a different Redis may lack it
   */
  readonly assertHeld = (): void => {
    const { clock, era } = this.options;
    if (clock.monotonic() - this.#renewedAt >= MAX_RENEWAL_AGE_MS)
      throw notLocked('the lock may end before the Handle server answers');
    // A renewal is no proof: a different server may have granted the lock to others before this one returned with it.
    if (this.#grantedAt < (era()?.since ?? Infinity)) throw notLocked('Redis may have lost the lock');
  };

  /** Releases the lock. Retries until Redis has replied or the lock has expired. */
  async release(): Promise<void> {
    const { redis, clock } = this.options;
    const names = this.#names;
    this.#cancelRenewal();
    this.#renewedAt = -Infinity;
    while (names !== undefined && clock.monotonic() < this.#requestedAt + this.#lifeMs) {
      const released = await redis.run('lock', (client) =>
        client.eval(UNLOCK, 2, names.lock, names.trace, this.#token, this.#traceMs),
      );
      if (released !== undefined) return;
      await pause(clock, AWAY_POLL_MS);
    }
  }

  async #renew(): Promise<void> {
    const { redis, clock } = this.options;
    const names = this.#names;
    if (names === undefined) return;
    const sentAt = clock.monotonic();
    const renewed = await redis.run(
      'lock',
      (client) => {
        this.#requestedAt = sentAt;
        return client.eval(RENEW_LOCK, 1, names.lock, this.#token, this.#lifeMs);
      },
      RENEW_MS,
    );
    if (renewed === 1) this.#renewedAt = sentAt;
    if (renewed !== 0) return;
    // Redis has lost the lock, or a different instance holds it. A former master may return with it.
    this.#renewedAt = -Infinity;
    this.#cancelRenewal();
  }
}

const notLocked = (detail: string): ServiceError =>
  new ServiceError('LOCK_UNAVAILABLE', { detail, retryAfterMs: 1000 });

/** Returns the Redis names for a key. The braces are the Redis Cluster hash tag, so all names share a slot. */
function lockNames(keyPrefix: string, key: string) {
  const name = `${keyPrefix}{${key.replace(/[{}%]/g, encodeURIComponent)}}`;
  return { lock: `${name}:lock`, next: `${name}:wanted`, trace: `${name}:held` };
}
