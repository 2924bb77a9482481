// The lock of a key over all instances, in Redis: a token with an expiry, which its owner renews and deletes.
import { randomUUID } from 'node:crypto';
import type { RedisCommands } from '../cache/redis/commands.js';

/** A lock outlives an owner that was killed by at most this time; a live owner renews it. */
const LIFE_MS = 6000;
const RENEW_MS = 2000;
const POLL_MS = 4;
/** Redis keeps the time of a release for this long; a read takes less. */
const TRACE_MS = 30_000;

/**
 * Keys: the lock, the instance that gets it next, the trace. ARGV: token, life in ms, instance, life of the trace in
 * ms. Returns -1 when the lock is taken, else the time since it was last held (ms). An instance that finds it taken
 * registers as the next one, so that an instance with a long queue cannot keep it. The trace is "held" until the
 * release: an owner that was killed may have written last. The first write is a deletion, because a full Redis
 * (noeviction) refuses a script whose first write needs memory.
 */
export const LOCK = `
local wanted = redis.call('GET', KEYS[2])
if redis.call('EXISTS', KEYS[1]) == 1 then
  if wanted then return -1 end
  redis.call('DEL', KEYS[2])
  redis.call('SET', KEYS[2], ARGV[3], 'PX', 1000)
  return -1
end
if wanted and wanted ~= ARGV[3] then return -1 end
local trace = redis.call('GET', KEYS[3])
local free = tonumber(ARGV[4])
if trace == 'held' then free = 0 elseif trace then free = math.max(0, free - redis.call('PTTL', KEYS[3])) end
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SET', KEYS[3], 'held', 'PX', ARGV[4])
return free`;

/** Keys: the lock, its trace. ARGV: token, life in ms, life of the trace in ms. */
export const RENEW_LOCK = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/** Keys: the lock, its trace. ARGV: token, life of the trace in ms. Deletes the lock of this token only. */
export const UNLOCK = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], 'free', 'PX', ARGV[2])
return 1`;

interface RedisLock {
  /** See LockGrant. */
  freeSince: number;
  release: () => Promise<void>;
}

/** Polls until the lock is free; undefined after `deadline` (by `performance.now()`). */
type AcquireRedisLock = (key: string, deadline: number) => Promise<RedisLock | undefined>;

export function createRedisLock(redis: Pick<RedisCommands, 'run' | 'keyPrefix'>): AcquireRedisLock {
  const instance = randomUUID();
  return async function acquire(key, deadline) {
    const [lock, next, trace] = lockKeys(redis.keyPrefix, key);
    const token = randomUUID();
    const tryLock = () =>
      redis.run('lock', (client) =>
        client.eval(LOCK, 3, lock, next, trace, token, LIFE_MS, instance, TRACE_MS),
      ) as Promise<number | undefined>;
    let freeMs = await tryLock();
    while (freeMs === -1) {
      if (performance.now() >= deadline) return undefined;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS * (0.5 + Math.random())));
      freeMs = await tryLock();
    }
    // Redis is unavailable: the lock holds within this machine only.
    if (freeMs === undefined) return { freeSince: -Infinity, release: () => Promise.resolve() };
    const freeSince = performance.now() - freeMs;
    const renewing = setInterval(() => {
      void redis.run('lock', (client) => client.eval(RENEW_LOCK, 2, lock, trace, token, LIFE_MS, TRACE_MS));
    }, RENEW_MS);
    const release = async (): Promise<void> => {
      clearInterval(renewing);
      await redis.run('lock', (client) => client.eval(UNLOCK, 2, lock, trace, token, TRACE_MS));
    };
    return { freeSince, release };
  };
}

/** The braces are the hash tag of a Redis Cluster: all names of one key are in one slot. */
function lockKeys(keyPrefix: string, key: string): [lock: string, next: string, trace: string] {
  const name = `${keyPrefix}{${key.replace(/[{}%]/g, encodeURIComponent)}}`;
  return [`${name}:lock`, `${name}:wanted`, `${name}:held`];
}
