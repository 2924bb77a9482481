// Redis scripts for the atomic steps of cache coherence. See coherence/README.md, "State in Redis".
import { CHARS_PER_ENTRY } from '../../handle/handle.js';

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end`;

/**
 * Maximum number of fields in a group state; above it, the older half of the changes is dropped. A long key counts as
 * several, as in `entriesOf`: otherwise anyone could fill Redis with names of 2 KB.
 */
const MAX_FIELDS = 192;

/**
 * Opens the state of a group. Recreates a state that is missing or belongs to a different server run: its
 * number comes from the server clock (µs), which exceeds all earlier numbers of this run, so older loads are
 * rejected. The first write is a deletion, because a full Redis (noeviction) refuses a script whose first
 * write needs memory. A key of a different type is replaced.
 */
const OPEN_STATE = `
local function numberOf(value)
  local number = tonumber(value or '0') or 0
  return number > 0 and number < 9e15 and number or 0
end
local function openState(name, run)
  if type(redis.pcall('HDEL', name, '-')) == 'table' then redis.call('DEL', name) end
  local state = redis.call('HMGET', name, 'run', 'seq')
  local seq = numberOf(state[2])
  if state[1] == run and seq > 0 then return seq end
  seq = time[1] * 1000000 + time[2]
  redis.call('DEL', name)
  redis.call('HSET', name, 'run', run, 'seq', text(seq), 'floor', text(seq))
  return seq
end`;

/**
 * Reads an entry's header (layout: entry.ts). A stale entry has its kind raised by 3. The time of its deletion
 * is in the bytes from 26 on. An invalid entry does not block a change.
 */
const ENTRY = `
local header = redis.pcall('GETRANGE', KEYS[1], 0, 32)
local kind = type(header) == 'string' and #header == 33 and string.byte(header, 5)`;

/** Reads the unexpired fences of a key from its field: `<fence>=<end> <fence>=<end>`. */
const FENCES = `
local function fencesOf(state, key)
  local left = {}
  for fence, ends in string.gmatch(redis.call('HGET', state, 'f:' .. key) or '', '(%S+)=(%d+)') do
    if tonumber(ends) > now then left[#left + 1] = { fence, ends } end
  end
  return left
end`;

const WRITE_FENCES = `
local function without(fences, fence)
  local left = {}
  for _, each in ipairs(fences) do if each[1] ~= fence then left[#left + 1] = each end end
  return left
end
local function writeFences(state, key, fences)
  local parts = {}
  for _, each in ipairs(fences) do parts[#parts + 1] = each[1] .. '=' .. each[2] end
  if #parts == 0 then redis.call('HDEL', state, 'f:' .. key)
  else redis.call('HSET', state, 'f:' .. key, table.concat(parts, ' ')) end
end`;

/** Above the maximum, drops expired fences and the older half of the changes; loads started before those are refused. */
const TRIM = `
local function trim(state, key)
  if redis.call('HLEN', state) * (1 + math.floor(#key / ${CHARS_PER_ENTRY})) <= ${MAX_FIELDS} then return end
  local fields, changes = redis.call('HGETALL', state), {}
  for at = 1, #fields, 2 do
    local name = fields[at]
    if string.sub(name, 1, 2) == 'c:' then changes[#changes + 1] = { name, tonumber(fields[at + 1]) } end
    if string.sub(name, 1, 2) == 'f:' then writeFences(state, string.sub(name, 3), fencesOf(state, string.sub(name, 3))) end
  end
  table.sort(changes, function(one, other) return one[2] < other[2] end)
  for at = 1, math.floor(#changes / 2) do
    redis.call('HDEL', state, changes[at][1])
    redis.call('HSET', state, 'floor', text(changes[at][2]))
  end
end`;

/**
 * Maximum TTL of a fresh Redis entry under a fence (ms). A disconnected writer acknowledges later than this,
 * possibly when no other process is left to void the entry.
 */
const FENCED_ENTRY_MS = 3000;

/**
 * Publishes a change of a key. Every kind except `unchanged` voids all older loads in the same step. KEYS:
 * entry, state. ARGV: run, kind, key, fence, fence lifetime (ms), channel, publishing command, message without
 * its number; for an authoritative answer also its ticket number, the entry and the entry's TTL (ms). Returns
 * the message number, and 1 if the answer was stored.
 */
export const CHANGE = `${NOW}${OPEN_STATE}${ENTRY}${FENCES}${WRITE_FENCES}${TRIM}
local state, change, key, fence = KEYS[2], ARGV[2], ARGV[3], ARGV[4]
local seq = openState(state, ARGV[1]) + 1
local raises = change == 'raise' or change == 'unknown'
local fences = without(fencesOf(state, key), fence)
if raises then fences[#fences + 1] = { fence, text(now + ARGV[5]) } end
writeFences(state, key, fences)
if change == 'changed' or change == 'forget' then redis.call('DEL', KEYS[1]) end
if (change == 'soften' or change == 'unknown') and kind and kind < 3 then
  redis.call('SETRANGE', KEYS[1], 4, string.char(kind + 3))
end
if change == 'raise' and kind and kind < 3 and redis.call('PTTL', KEYS[1]) > ${FENCED_ENTRY_MS} then
  redis.call('PEXPIRE', KEYS[1], ${FENCED_ENTRY_MS})
end
if kind and (change == 'unknown' or (change == 'unchanged' and #fences == 0)) then
  redis.pcall('PEXPIRE', KEYS[1], math.ceil(struct.unpack('>d', string.sub(header, 26)) - now))
end
local ticket, known = tonumber(ARGV[9] or ''), redis.call('HMGET', state, 'floor', 'c:' .. key)
local replaces = ticket and #fences == 0 and numberOf(known[1]) <= ticket and numberOf(known[2]) <= ticket
if replaces then redis.call('SET', KEYS[1], ARGV[10], 'PX', ARGV[11]) end
if change ~= 'unchanged' then redis.call('HSET', state, 'c:' .. key, text(seq)) end
redis.call('HSET', state, 'seq', text(seq))
trim(state, key)
redis.call(ARGV[7], ARGV[6], text(seq) .. ' ' .. ARGV[8])
return { text(seq), replaces and 1 or 0 }`;

/**
 * Reads what a load needs: the run and number of its group, the fences of its key, and the clock of this server (ms),
 * by which the times of entries are stored. The clocks of instances may differ. KEYS: state. ARGV: key.
 */
export const TICKET = `${NOW}
local ticket = redis.call('HMGET', KEYS[1], 'run', 'seq', 'f:' .. ARGV[1])
ticket[4] = text(now)
return ticket`;

/**
 * Stores a loaded entry, and clears expired fences. KEYS: entry, state. ARGV: ticket run, ticket number, key,
 * entry, TTL (ms). Returns 1 if stored, 0 if refused.
 */
export const STORE = `${NOW}${FENCES}
local state = redis.call('HMGET', KEYS[2], 'run', 'floor', 'c:' .. ARGV[3])
local ticket = tonumber(ARGV[2])
if state[1] ~= ARGV[1] or tonumber(state[2] or '0') > ticket or tonumber(state[3] or '0') > ticket then return 0 end
if #fencesOf(KEYS[2], ARGV[3]) > 0 then return 0 end
if redis.call('HEXISTS', KEYS[2], 'f:' .. ARGV[3]) == 1 then redis.call('HDEL', KEYS[2], 'f:' .. ARGV[3]) end
redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
return 1`;

/** Returns the sequence numbers of groups. KEYS: group states in one slot. ARGV: run. */
export const SYNC = `${NOW}${OPEN_STATE}
local numbers = {}
for at, state in ipairs(KEYS) do numbers[at] = text(openState(state, ARGV[1])) end
return numbers`;

/** Maximum length of the list of earlier eras (characters). Dropping an era only causes extra loads. */
const MAX_ERAS_LENGTH = 1000;

/** Lists a ban. Above the maximum, the oldest bans are dropped, and the newest dropped number becomes the floor. */
const ADD_BAN = `
local function addBan(state, seq, ban, maximum)
  redis.call('HSET', state, 'seq', text(seq), 'b:' .. text(seq), ban)
  local numbers = {}
  for _, name in ipairs(redis.call('HKEYS', state)) do
    if string.sub(name, 1, 2) == 'b:' then numbers[#numbers + 1] = tonumber(string.sub(name, 3)) end
  end
  table.sort(numbers)
  for at = 1, #numbers - maximum do
    redis.call('HDEL', state, 'b:' .. text(numbers[at]))
    redis.call('HSET', state, 'floor', text(numbers[at]))
  end
end`;

/**
 * Publishes a ban and returns its number. KEYS: state of the bans. ARGV: run, ban, maximum number of bans,
 * channel, publishing command, message without its number.
 */
export const BAN = `${NOW}${OPEN_STATE}${ADD_BAN}
local seq = openState(KEYS[1], ARGV[1]) + 1
addBan(KEYS[1], seq, ARGV[2], ARGV[3])
redis.call(ARGV[5], ARGV[4], text(seq) .. ' ' .. ARGV[6])
return text(seq)`;

/**
 * Enters the era of this server, and returns the state of the bans. KEYS: state of the bans. ARGV: run, the member's
 * previous era ('' for none), name for a new era, channel, publishing command, ban message without its number,
 * maximum number of bans.
 *
 * An era is a period during which this server was continuously the master. If a member's previous era is unknown, a
 * different server was the master in between: a new era starts, and all earlier entries become stale.
 */
export const ENTER = `${NOW}${OPEN_STATE}${ADD_BAN}
local state, from = KEYS[1], ARGV[2]
local seq = openState(state, ARGV[1])
local known = redis.call('HMGET', state, 'era', 'before')
local era, before = known[1], known[2] or ''
local isKnown = from == '' or from == era or string.find(before, from, 1, true)
if era and not isKnown then
  seq = seq + 1
  addBan(state, seq, 'soft ', ARGV[7])
  redis.call(ARGV[5], ARGV[4], text(seq) .. ' ' .. ARGV[6])
  era, before = false, before .. ' ' .. era
end
if not isKnown then before = string.sub(before .. ' ' .. from, -${MAX_ERAS_LENGTH}) end
redis.call('HSET', state, 'era', era or ARGV[3], 'before', before)
return redis.call('HGETALL', state)`;

/** The commands of the scripts that publish, except TIME, which each script runs. */
const PUBLISHING = new Set(
  Array.from(`${CHANGE}${BAN}`.matchAll(/redis\.p?call\('(?!TIME)([A-Z]+)'/g), ([, name = '']) => name),
);

/** Start of the error of a script that has done nothing, because the user lacks the right to a command. */
export const NOT_PERMITTED = 'NOPERM this user has no permissions to run';

/**
 * Fails if the user lacks the right to a command that publishes a change. Otherwise instances would keep their
 * leases, although no write can be announced to them. Redis before version 7 cannot tell. Every argument is the
 * key, because all arguments of DEL are keys. Redis 8 tells only for a number of arguments that the command accepts.
 */
export const ASSERT_MAY_PUBLISH = `
local function mayRun(command)
  for count = 3, 2, -1 do
    local isAnswered, may = pcall(redis.acl_check_cmd, command, unpack({ KEYS[1], KEYS[1], KEYS[1] }, 1, count))
    if isAnswered then return may end
  end
  return redis.acl_check_cmd(command, KEYS[1])
end
local function assertMay(command, may)
  if not may then error({ err = '${NOT_PERMITTED} ' .. command }) end
end
local function assertMayPublish(command, channel)
  if not redis.acl_check_cmd then return end
  assertMay(command, redis.acl_check_cmd(command, channel, ''))
  for name in string.gmatch('${[...PUBLISHING].join(' ')}', '%S+') do assertMay(name, mayRun(name)) end
end`;

/**
 * Renews a membership. KEYS: member list. ARGV: member, membership time (ms), 1 to join, 1 if it holds a lease or 2
 * to also remove members that lapsed more than a membership time ago, list mark, send time (Redis clock, ms), maximum
 * delay (ms), publishing command, a channel. Returns the previous state of the member ('listed', 'lapsed' or
 * 'absent'; 'late' above the maximum delay), the number of members, the lapsed members, the list's creation time and
 * age (ms), the Redis time (ms) and, for a member without a lease, the number of members with a lease (their scores
 * end in .5).
 *
 * A late renewal (Redis was frozen) changes nothing, because the member may have unreported changes. An absent member
 * stays absent unless it joins. An expelled member has a negative score: it sees itself as absent, and the others see
 * it as lapsed. A list without its mark belongs to a different server run and may be incomplete.
 *
 * For a member without a lease, a member that has not renewed for half of its membership has lapsed, and vouches for
 * nothing: a former master that hung for a membership lists its members, and its clock may have been set back by a second.
 */
export const RENEW = `${NOW}${ASSERT_MAY_PUBLISH}
assertMayPublish(ARGV[8], ARGV[9])
if now - ARGV[6] > tonumber(ARGV[7]) then return { 'late', 0, {}, '0', 0, text(now), 0 } end
local begun = redis.pcall('ZSCORE', KEYS[1], ARGV[5])
if type(begun) ~= 'string' then
  begun = text(now)
  redis.call('DEL', KEYS[1])
  redis.call('ZADD', KEYS[1], begun, ARGV[5])
end
local age = math.max(0, now - begun)
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
local was = 'absent'
if ends and tonumber(ends) > 0 then was = tonumber(ends) < now and 'lapsed' or 'listed' end
if was == 'absent' and ARGV[3] ~= '1' then return { was, 0, {}, begun, age, text(now), 0 } end
redis.call('ZREM', KEYS[1], ARGV[1])
local leased, current = 0, now
if ARGV[4] == '0' then
  current = now + ARGV[2] / 2
  for _, score in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], text(current), '+inf', 'WITHSCORES')) do
    if string.sub(score, -2) == '.5' then leased = leased + 1 end
  end
end
redis.call('ZADD', KEYS[1], text(now + ARGV[2]) .. (ARGV[4] ~= '0' and '.5' or ''), ARGV[1])
local function between(from, to)
  local members = {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], from, to)) do
    if member ~= ARGV[5] then members[#members + 1] = member end
  end
  return members
end
local lapsed = between('-inf', '(' .. text(current))
if ARGV[4] == '2' then
  local long = text(now - ARGV[2])
  for _, range in ipairs({ { 0, '(' .. long }, { '(-' .. long, '(0' } }) do
    for _, member in ipairs(between(range[1], range[2])) do redis.call('ZREM', KEYS[1], member) end
  end
end
return { was, redis.call('ZCARD', KEYS[1]) - 1, lapsed, begun, age, text(now), leased }`;

/** Expels members. KEYS: member list. ARGV: members to expel. */
export const EXPEL = `${NOW}
for _, member in ipairs(ARGV) do
  local ends = redis.call('ZSCORE', KEYS[1], member)
  if ends and tonumber(ends) > 0 then redis.call('ZADD', KEYS[1], text(-now), member) end
end`;
