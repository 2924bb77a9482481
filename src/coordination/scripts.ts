// Steps of locks, counters and left names that have to happen in Redis as one.

/**
 * Keys: the lock, which instance wants it next, the trace of its holders. ARGV: token, life in ms, instance,
 * life of the trace in ms. Gives -1 when it is taken, else for how long nobody had it (ms). Who finds it
 * taken says so, and goes first when it is free: else an instance with a long queue would never let go.
 * The trace says "held" until its holder releases it: a holder that was killed may have written last.
 * A deletion is first: a full Redis (noeviction) refuses a script whose first write wants memory.
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

/** ARGV: length of the window in ms. Gives the count in the window and what is left of it. */
export const COUNT = `
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return { count, redis.call('PTTL', KEYS[1]) }`;

/** Keys: the lock, its trace. ARGV: token, life of the trace in ms. Only its owner takes a lock away. */
export const UNLOCK = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], 'free', 'PX', ARGV[2])
return 1`;

/** ARGV: a name, how long it is kept in ms. */
export const STORE_UNCLAIMED = `
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;
