// The steps that have to happen in Redis as one: no other command can come in between.

// Keys of every script: the entry, the mark, the writers. The mark changes with every write and every
// forgetting; a load is only stored while the mark is the one it began with. Writers are a sorted set
// by the time their fence runs out, on the clock of Redis, which all instances share.
const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** ARGV: mark at the load's beginning, entry, its life in ms. */
export const STORE = `${NOW}
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[1] then return 0 end
if redis.call('ZCOUNT', KEYS[3], now, '+inf') > 0 then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`;

/** ARGV as FORGET, then as STORE: what others keep, or store from now on, is older than this. */
export const REPLACE = `${NOW}
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[5] then return 0 end
if redis.call('ZCOUNT', KEYS[3], now, '+inf') > 0 then return 0 end
redis.call('SET', KEYS[1], ARGV[6], 'PX', ARGV[7])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1`;

/**
 * ARGV: new mark, its life in ms, channel, message. The mark stands before anybody hears of it. The
 * deletion is first: a full Redis (noeviction) refuses a script whose first write wants memory.
 */
export const FORGET = `
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1`;

/** ARGV as FORGET. An entry that may only stand in has a byte of its kind that is raised by 3 (see entry.ts). */
export const SOFTEN = `
local kind = string.byte(redis.call('GETRANGE', KEYS[1], 4, 4))
if kind and kind < 3 then redis.call('SETRANGE', KEYS[1], 4, string.char(kind + 3)) end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1`;

/** ARGV as FORGET, then writer, life of the fence in ms. */
export const RAISE = `${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
redis.call('ZADD', KEYS[3], now + ARGV[6], ARGV[5])
redis.call('PEXPIRE', KEYS[3], ARGV[6])${FORGET}`;

/** ARGV as FORGET, then writer. */
export const LOWER = `
redis.call('ZREM', KEYS[3], ARGV[5])${FORGET}`;

/**
 * Keys: the lock, and which instance wants it next. ARGV: token, life in ms, instance. Who finds it
 * taken says so, and goes first when it is free: else an instance with a long queue would never let go.
 * A deletion is first, as above: a full Redis would else be taken for one that is away, and not lock.
 */
export const LOCK = `
local wanted = redis.call('GET', KEYS[2])
if redis.call('EXISTS', KEYS[1]) == 1 then
  if wanted then return 0 end
  redis.call('DEL', KEYS[2])
  redis.call('SET', KEYS[2], ARGV[3], 'PX', 1000)
  return 0
end
if wanted and wanted ~= ARGV[3] then return 0 end
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`;

/** ARGV: token, life in ms. */
export const RENEW_LOCK = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/**
 * Keys: the epoch. ARGV: the epoch this instance lives in, 1 to begin a new one or 0, channel, message
 * with %d in it. An epoch that Redis has lost is set again, so that no older one comes back.
 */
export const EPOCH = `
local stored = tonumber(redis.call('GET', KEYS[1]) or '0') or 0
local epoch = math.max(stored, tonumber(ARGV[1])) + tonumber(ARGV[2])
if epoch ~= stored then
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], string.format('%d', epoch))
  redis.call('PUBLISH', ARGV[3], string.format(ARGV[4], epoch))
end
return epoch`;

/**
 * Keys: the sweeps, a sorted set of their lines by number. ARGV: the newest this instance knows, what
 * stands before and after the number in the line, channel, sender, how many are kept. Numbers are the
 * time of Redis (µs), so that they go on growing when Redis loses all it has.
 */
export const SWEEP = `
local time = redis.call('TIME')
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
local number = math.max(time[1] * 1000000 + time[2], (tonumber(last[2]) or 0) + 1, ARGV[1] + 1)
local text = string.format('%.0f', number)
local line = ARGV[2] .. text .. ARGV[3]
redis.call('ZADD', KEYS[1], text, line)
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[6])
redis.call('PUBLISH', ARGV[4], ARGV[5] .. line)
return number`;

/** ARGV: length of the window in ms. Gives the count in the window and what is left of it. */
export const COUNT = `
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return { count, redis.call('PTTL', KEYS[1]) }`;

/** ARGV: token. Only its owner takes a lock away. */
export const UNLOCK = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`;

/** ARGV: a name, how long it is kept in ms. */
export const LEAVE = `
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;
