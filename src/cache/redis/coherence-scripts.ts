// The atomic steps of cache coherence as Redis scripts. See coherence/README.md, "State in Redis".

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Maximum number of fields of a group state; above it, the older half of its changes is dropped. */
const MAX_FIELDS = 192;

/**
 * Opens the state of a group. A missing state, or one of another server run, is created with a number from the clock of
 * this server. If the state is lost, its successor starts above every number of this run and rejects older loads. The first
 * write is a deletion, because a full Redis (noeviction) refuses a script whose first write needs memory. A key of
 * another type is replaced.
 */
const OPEN_STATE = `
local function numberOf(value)
  local number = tonumber(value or '0') or 0
  return number > 0 and number < 9e15 and number or 0
end
local function text(number) return string.format('%.0f', number) end
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

/** Layout of an entry: see entry.ts. A stale entry has its kind raised by 3. An invalid entry does not prevent the publication of a change. */
const ENTRY = `
local header = redis.pcall('GETRANGE', KEYS[1], 0, 32)
local kind = type(header) == 'string' and #header == 33 and string.byte(header, 5)
local function makeStale()
  if kind and kind < 3 then redis.call('SETRANGE', KEYS[1], 4, string.char(kind + 3)) end
end
local function liveUntilDeleted(now)
  redis.pcall('PEXPIRE', KEYS[1], math.ceil(struct.unpack('>d', string.sub(header, 26)) - now))
end`;

/** Fences of a key are one field: \`<fence>=<end> <fence>=<end>\`; expired ones are skipped. */
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

/** Drops the older half of the changes and the expired fences; loads from before them are refused. */
const TRIM = `
local function trim(state)
  if redis.call('HLEN', state) <= ${MAX_FIELDS} then return end
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
 * Maximum life of a fresh entry in Redis under a fence (ms). A writer that is cut off acknowledges no earlier, and no other
 * process may know that its fence is void.
 */
const FENCED_ENTRY_MS = 3000;

/**
 * Publishes a change of a key. KEYS: entry, state. ARGV: run, kind, key, fence, life of the fence (ms), wall clock of
 * the sender (ms), channel, command to publish, message without its number; and for an authoritative answer the number
 * of its ticket, the entry, and its life (ms). Returns the number, and 1 when the answer was stored: the change makes every
 * older load void in the same step.
 */
export const CHANGE = `${NOW}${OPEN_STATE}${ENTRY}${FENCES}${WRITE_FENCES}${TRIM}
local state, change, key, fence = KEYS[2], ARGV[2], ARGV[3], ARGV[4]
local seq = openState(state, ARGV[1]) + 1
local raises = change == 'raise' or change == 'unknown'
local fences = without(fencesOf(state, key), fence)
if raises then fences[#fences + 1] = { fence, text(now + ARGV[5]) } end
writeFences(state, key, fences)
if change == 'changed' or change == 'forget' then redis.call('DEL', KEYS[1]) end
if change == 'soften' or change == 'unknown' then makeStale() end
if change == 'raise' and kind and kind < 3 and redis.call('PTTL', KEYS[1]) > ${FENCED_ENTRY_MS} then
  redis.call('PEXPIRE', KEYS[1], ${FENCED_ENTRY_MS})
end
if kind and (change == 'unknown' or (change == 'unchanged' and #fences == 0)) then
  liveUntilDeleted(ARGV[6])
end
local ticket, known = tonumber(ARGV[10] or ''), redis.call('HMGET', state, 'floor', 'c:' .. key)
local replaces = ticket and #fences == 0 and numberOf(known[1]) <= ticket and numberOf(known[2]) <= ticket
if replaces then redis.call('SET', KEYS[1], ARGV[11], 'PX', ARGV[12]) end
if change ~= 'unchanged' then redis.call('HSET', state, 'c:' .. key, text(seq)) end
redis.call('HSET', state, 'seq', text(seq))
trim(state)
redis.call(ARGV[8], ARGV[7], text(seq) .. ' ' .. ARGV[9])
return { text(seq), replaces and 1 or 0 }`;

/** Stores a load, and clears expired fences. KEYS: entry, state. ARGV: run and number of the ticket, key, entry, its life (ms). Returns 0 if refused. */
export const STORE = `${NOW}${FENCES}
local state = redis.call('HMGET', KEYS[2], 'run', 'floor', 'c:' .. ARGV[3])
local ticket = tonumber(ARGV[2])
if state[1] ~= ARGV[1] or tonumber(state[2] or '0') > ticket or tonumber(state[3] or '0') > ticket then return 0 end
if #fencesOf(KEYS[2], ARGV[3]) > 0 then return 0 end
if redis.call('HEXISTS', KEYS[2], 'f:' .. ARGV[3]) == 1 then redis.call('HDEL', KEYS[2], 'f:' .. ARGV[3]) end
redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
return 1`;

/** Reads the numbers of groups. KEYS: states in one slot. ARGV: run. */
export const SYNC = `${NOW}${OPEN_STATE}
local numbers = {}
for at, state in ipairs(KEYS) do numbers[at] = text(openState(state, ARGV[1])) end
return numbers`;

/** Maximum length of the list of earlier eras (characters). Dropping an era only costs loads. */
const MAX_ERAS_LENGTH = 1000;

/** Lists a ban. Above the maximum the oldest bans are dropped, and the newest of those is the floor. */
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
 * Publishes a ban. KEYS: state of the bans. ARGV: run, ban, maximum number of bans, channel, command to publish, message
 * without its number. Returns the number. It is never behind the clock of Redis, so that a member that missed messages
 * cannot take a newer ban for an older one.
 */
export const BAN = `${NOW}${OPEN_STATE}${ADD_BAN}
local seq = openState(KEYS[1], ARGV[1]) + 1
addBan(KEYS[1], seq, ARGV[2], ARGV[3])
redis.call(ARGV[5], ARGV[4], text(seq) .. ' ' .. ARGV[6])
return text(seq)`;

/**
 * Enters the era of this server, and reads the bans. KEYS: state of the bans. ARGV: run, the era that the member comes from
 * ('' for none), a name for the next era, channel, command to publish, message of a ban without its number, maximum number
 * of bans.
 *
 * An era is a period in which this server was the master without interruption. An unknown era of a member means that
 * another server was the master in between: a new era begins, and all earlier entries are stale.
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

/**
 * Renews a membership. KEYS: members. ARGV: member, its life (ms), 1 to join, 1 if it has a lease or 2 to also remove members
 * that lapsed one life ago, the mark of the list, time of sending (Redis clock, ms), maximum delay (ms). Returns the
 * former state of the member ('listed', 'lapsed' or 'absent'; 'late' above the maximum delay), the number of members, the
 * lapsed members, the start of the list, its age (ms), the time, and, for a member without a lease, the
 * number of those with one: their score has half a millisecond more.
 *
 * A late renewal (Redis was frozen) changes nothing: the member may have made changes that it has not reported. An absent
 * member stays absent unless it joins. An expelled member has a negative score: it is absent for itself, and lapsed for
 * the others. A list without its mark belongs to another server run and may be incomplete.
 */
export const RENEW = `${NOW}
local function text(number) return string.format('%.0f', number) end
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
local leased = 0
if ARGV[4] == '0' then
  for _, score in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], text(now), '+inf', 'WITHSCORES')) do
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
local lapsed = between('-inf', '(' .. text(now))
if ARGV[4] == '2' then
  local long = text(now - ARGV[2])
  for _, range in ipairs({ { 0, '(' .. long }, { '(-' .. long, '(0' } }) do
    for _, member in ipairs(between(range[1], range[2])) do redis.call('ZREM', KEYS[1], member) end
  end
end
return { was, redis.call('ZCARD', KEYS[1]) - 1, lapsed, begun, age, text(now), leased }`;

/** Ends memberships. KEYS: members. ARGV: members. */
export const EXPEL = `${NOW}
for _, member in ipairs(ARGV) do
  local ends = redis.call('ZSCORE', KEYS[1], member)
  if ends and tonumber(ends) > 0 then redis.call('ZADD', KEYS[1], string.format('%.0f', -now), member) end
end`;
