// The steps that have to happen in Redis as one: no other command can come in between.

// Keys of every script: the entry, the mark, the writers. The mark changes with every write and every
// invalidation; a load is only stored while the mark is the one it began with. Its first byte is a flag, the
// rest a random id. Writers are a sorted set by the time their fence expires, on the clock of Redis, which all
// instances share.

/** Flag of a mark while a fence is up: a process that has not heard of the fence must not copy the entry. */
export const FENCED = 'f';
const OPEN = 'o';

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Ends the script unless the id of the mark is this one and no fence is up. A flag left by a killed writer goes. */
const refuseUnless = (id: string): string => `${NOW}
local mark = redis.call('GET', KEYS[2]) or ''
if string.sub(mark, 2) ~= ${id} then return 0 end
if redis.call('ZCOUNT', KEYS[3], now, '+inf') > 0 then return 0 end
if string.sub(mark, 1, 1) == '${FENCED}' then redis.call('SETRANGE', KEYS[2], 0, '${OPEN}') end`;

/** ARGV: id of the mark when the load began, entry, its life in ms. */
export const STORE = `${refuseUnless('ARGV[1]')}
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`;

const PUBLISH_WITH_MARK = (flag: string): string => `
redis.call('SET', KEYS[2], '${flag}' .. ARGV[1], 'PX', ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1`;

/** ARGV as FORGET, then as STORE: every other copy, and every load in flight, is older than this. */
export const REPLACE = `${refuseUnless('ARGV[5]')}
redis.call('SET', KEYS[1], ARGV[6], 'PX', ARGV[7])${PUBLISH_WITH_MARK(OPEN)}`;

/**
 * ARGV: id of the new mark, its life in ms, channel, message. The mark stands before the message is out. The
 * deletion is first: a full Redis (noeviction) refuses a script whose first write wants memory.
 */
export const FORGET = `
redis.call('DEL', KEYS[1])${PUBLISH_WITH_MARK(OPEN)}`;

/** Layout of an entry: see entry.ts. A stale one has a kind that is raised by 3. */
const ENTRY = `
local kind = string.byte(redis.call('GETRANGE', KEYS[1], 4, 4))
local isFresh = kind and kind < 3
local function deleteAt() return struct.unpack('>d', redis.call('GETRANGE', KEYS[1], 25, 32)) end`;

const MAKE_STALE = `${ENTRY}
if isFresh then redis.call('SETRANGE', KEYS[1], 4, string.char(kind + 3)) end`;

/** ARGV as FORGET. */
export const SOFTEN = `${MAKE_STALE}${PUBLISH_WITH_MARK(OPEN)}`;

/**
 * ARGV as FORGET, then writer, life of the fence in ms. A fresh entry expires with the fence, unless it is lowered
 * before: nobody else knows how the write of a killed writer ended.
 */
export const RAISE = `${NOW}${ENTRY}
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
redis.call('ZADD', KEYS[3], now + ARGV[6], ARGV[5])
redis.call('PEXPIRE', KEYS[3], ARGV[6])
if isFresh and redis.call('PTTL', KEYS[1]) > tonumber(ARGV[6]) then redis.call('PEXPIRE', KEYS[1], ARGV[6]) end
${PUBLISH_WITH_MARK(FENCED)}`;

/** ARGV as FORGET, then writer. */
export const LOWER_CHANGED = `
redis.call('ZREM', KEYS[3], ARGV[5])${FORGET}`;

/**
 * ARGV as FORGET, then writer, now on the clock of this instance. Without the fence of another writer the entry
 * gets its life back. The mark keeps its id: a load that began meanwhile has read the right record.
 */
export const LOWER_UNCHANGED = `${ENTRY}
redis.call('ZREM', KEYS[3], ARGV[5])
if redis.call('EXISTS', KEYS[3]) == 0 then
  if kind then redis.call('PEXPIRE', KEYS[1], math.ceil(deleteAt() - ARGV[6])) end
  if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('SETRANGE', KEYS[2], 0, '${OPEN}') end
end
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1`;

/** ARGV as LOWER_UNCHANGED. The entry is stale from now on, and keeps its life; the fence stays. */
export const SOFTEN_FENCED = `${MAKE_STALE}
if kind then redis.call('PEXPIRE', KEYS[1], math.ceil(deleteAt() - ARGV[6])) end${PUBLISH_WITH_MARK(FENCED)}`;

/**
 * Keys: the lock, which instance wants it next, the trace of its holders. ARGV: token, life in ms, instance,
 * life of the trace in ms. Gives -1 when it is taken, else for how long nobody had it (ms). Who finds it
 * taken says so, and goes first when it is free: else an instance with a long queue would never let go.
 * The trace says "held" until its holder releases it: a holder that was killed may have written last.
 * A deletion is first, as above: a full Redis would else be taken for one that is away, and not lock.
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

/** Keys: the lock, its trace. ARGV: token, life of the trace in ms. Only its owner takes a lock away. */
export const UNLOCK = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], 'free', 'PX', ARGV[2])
return 1`;

/** ARGV: a name, how long it is kept in ms. */
export const LEAVE = `
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;
