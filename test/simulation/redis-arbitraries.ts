// Random commands, and random calls of the production scripts, for the comparison with a real Redis.
import { fc } from '../support/property.js';
import * as coherence from '../../src/cache/redis/coherence-scripts.js';
import { LOCK, RENEW_LOCK, UNLOCK } from '../../src/write/redis-lock.js';
import { STORE_UNCLAIMED } from '../../src/v2/unclaimed-names.js';
import { LIFE_STEP_MS } from './redis-pair.js';

/** A command, or a script with its keys and arguments, as byte strings (latin1, one character per byte). */
export type Step = readonly [name: string, ...args: string[]];

const bytes = fc.uint8Array({ maxLength: 6 }).map((data) => Buffer.from(data).toString('latin1'));
const small = fc.integer({ min: -4, max: 8 }).map(String);
const value = fc.oneof(small, bytes, fc.constantFrom('x', '007', '1.5', ''));
const field = fc.constantFrom('f', 'g', 'c:1');
const member = fc.constantFrom('m', 'n', 'o');
const life = fc.constantFrom(1, 2, 3).map((steps) => String(steps * LIFE_STEP_MS));
const score = fc.oneof(
  small,
  fc.double({ noNaN: true, min: -1e9, max: 1e9 }).map(String),
  fc.constantFrom('inf', '-inf', '1e3', 'no', ' 1'),
);
const bound = fc.oneof(
  score,
  small.map((text) => `(${text}`),
  fc.constantFrom('-inf', '+inf'),
);

/** Generates mostly keys of the right type. */
const keyOf = (type: string): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(`${type}1`, `${type}2`) },
    { weight: 1, arbitrary: fc.constantFrom('s1', 'h1', 'z1', 'l1', 'x1') },
  );

const [s, h, z, l, x] = ['s', 'h', 'z', 'l', 'x'].map(keyOf) as [Texts, Texts, Texts, Texts, Texts];
const any = fc.oneof(s, h, z, l, x);
const streamId = fc.tuple(fc.nat(3), fc.nat(9)).map(([time, number]) => `${time}-${number}`);

type Texts = fc.Arbitrary<string>;

function step(name: string, ...args: Texts[]): fc.Arbitrary<Step> {
  return fc.tuple(fc.constant(name), ...args);
}

const is = (text: string): Texts => fc.constant(text);

const onStrings = [
  step('GET', s),
  step('SET', s, value),
  step('SET', s, value, is('PX'), life),
  step('SET', s, value, is('NX')),
  step('SET', s, value, is('px'), life, is('xx')),
  step('SET', s, value, fc.constantFrom('PX', 'what')),
  step('SET', s, value, is('PX'), fc.constantFrom('0', '-1', 'x', '1.5')),
  step('APPEND', s, value),
  step('STRLEN', s),
  step('GETRANGE', s, small, small),
  step('SETRANGE', s, small, value),
  step('INCR', s),
  step('INCRBY', s, value),
  step('MGET', s, any),
];

const onHashes = [
  step('HGET', h, field),
  step('HSET', h, field, value),
  step('HSET', h, field, value, field, value),
  step('HSET', h, field, value, field),
  step('HSETNX', h, field, value),
  step('HMGET', h, field, field),
  step('HDEL', h, field, field),
  step('HLEN', h),
  step('HGETALL', h),
  step('HKEYS', h),
  step('HVALS', h),
  step('HEXISTS', h, field),
  step('HINCRBY', h, field, value),
];

const onSortedSets = [
  step('ZADD', z, score, member),
  step('ZADD', z, score, member, score, member),
  step('ZADD', z, score, member, score),
  step('ZREM', z, member, member),
  step('ZSCORE', z, member),
  step('ZCARD', z),
  step('ZCOUNT', z, bound, bound),
  step('ZRANGE', z, small, small),
  step('ZRANGE', z, small, small, is('WITHSCORES')),
  step('ZRANGE', z, small, small, is('rev')),
  step('ZRANGEBYSCORE', z, bound, bound),
  step('ZRANGEBYSCORE', z, bound, bound, is('withscores')),
  step('ZRANGEBYSCORE', z, bound, bound, is('LIMIT'), small, small),
  step('ZREMRANGEBYSCORE', z, bound, bound),
  step('ZREMRANGEBYRANK', z, small, small),
];

const onStreams = [
  step('XADD', x, streamId, field, value),
  step('XADD', x, streamId, field, value, field, value),
  step('XADD', x, streamId, field, value, field),
  step('XADD', x, is('0-0'), field, value),
  step('XTRIM', x, is('MAXLEN'), fc.constantFrom('0', '2', '-1')),
  step('XLEN', x),
  step('XREVRANGE', x, is('+'), is('-'), is('COUNT'), fc.constantFrom('1', '3')),
  step('XREAD', is('COUNT'), fc.constantFrom('1', '100'), is('STREAMS'), x, streamId),
];

const onAny = [
  step('RPUSH', l, value, value),
  step('LPOP', l),
  step('LRANGE', l, small, small),
  step('LLEN', l),
  step('DEL', any, any),
  step('UNLINK', any),
  step('EXISTS', any, any),
  step('TYPE', any),
  step('PERSIST', any),
  step('PEXPIRE', any, life),
  step('PEXPIRE', any, fc.constantFrom('0', '-5', 'x')),
  step('PEXPIRE', any, life, fc.constantFrom('NX', 'XX', 'what')),
  step('PEXPIREAT', any, fc.constantFrom('1', '1900000000000', '1950000000000')),
  // An expiry that is compared with a second expiry must be equal on both servers to the millisecond.
  step('PEXPIREAT', any, fc.constantFrom('1900000000000', '1950000000000'), fc.constantFrom('GT', 'LT')),
  step('PUBLISH', is('channel'), value),
  step('SPUBLISH', is('channel'), value),
  step('PING'),
  step('PING', value),
  step('GET'),
  step('HGET', h),
  step('DBSIZE'),
];

export const commands: fc.Arbitrary<Step> = fc.oneof(
  ...[...onStrings, ...onHashes, ...onSortedSets, ...onStreams, ...onAny],
);

const id = fc.constantFrom('id-1', 'id-2');
const writer = fc.constantFrom('writer-1', 'writer-2');
const now = fc.constantFrom('1700000000000', '1700022000000');

/**
 * Generates entries in the layout of entry.ts: the kind at byte 4, the deletion time at byte 25. Some are too
 * short. The remaining lifetime is never close to that of a fence, nor to zero.
 */
const entry = fc
  .tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 1, max: 4 }), fc.integer({ min: 26, max: 60 }))
  .map(([kind, lives, length]) => {
    const data = Buffer.alloc(60, 0xc3);
    data.writeUInt8(kind, 4);
    data.writeDoubleBE(1_700_000_000_000 + (lives + 0.3) * LIFE_STEP_MS + 0.5, 25);
    return data.subarray(0, length).toString('latin1');
  });

/** Replaces TIME in a script with a constant, because both servers must run it at the same time. */
const atSomeTime = (source: string): Texts =>
  fc.constantFrom('1700000000', '1700020000').map((seconds) => {
    return source.replace("redis.call('TIME')", `{ '${seconds}', '123456' }`);
  });

function script(source: string, keys: readonly string[], ...args: Texts[]): fc.Arbitrary<Step> {
  return step('EVAL', atSomeTime(source), is(String(keys.length)), ...keys.map(is), ...args);
}

/** A lock with a longer lifetime, because a lifetime of a second could end earlier on one server. */
const PATIENT_LOCK = LOCK.replace("'PX', 1000)", `'PX', ${LIFE_STEP_MS})`);

const ENTRY_KEYS = ['{e}entry', '{e}state'];
const LOCK_KEYS = ['{l}lock', '{l}wanted', '{l}trace'];
const HOLDER_KEYS = ['{l}lock', '{l}trace'];
const BANS = ['{b}state'];
const MEMBERS = ['members'];
const run = fc.constantFrom('run-1', 'run-2');
const key = fc.constantFrom('21.T/1', '21.T/2');
const kind = fc.constantFrom('raise', 'changed', 'unchanged', 'unknown', 'forget', 'soften');
/** Numbers below and above the number that a state derives from its time. */
const ticket = fc.constantFrom('5', '1700000000123456', '1700000000123457', '1700020000123460');
const ban = fc.constantFrom('soft 21.T/', 'hard ');
const flag = fc.constantFrom('0', '1');
const lease = fc.constantFrom('0', '1', '2');
const era = fc.constantFrom('', 'era-1', 'era-2', 'era-3');
const publishing = [is('channel'), fc.constantFrom('PUBLISH', 'SPUBLISH'), value];

/** Enough changes for a script to drop the older half. */
const FULL_STATE = [
  'EVAL',
  `for at = 1, 200 do redis.call('HSET', KEYS[1], 'c:' .. at, at) end
   return redis.call('HSET', KEYS[1], 'run', 'run-1', 'seq', 200, 'floor', 1)`,
  '1',
  '{e}state',
] as const;

export const scriptCalls: fc.Arbitrary<Step> = fc.oneof(
  script(coherence.CHANGE, ENTRY_KEYS, run, kind, key, writer, life, ...publishing),
  script(coherence.CHANGE, ENTRY_KEYS, run, kind, key, writer, life, ...publishing),
  script(coherence.CHANGE, ENTRY_KEYS, run, kind, key, writer, life, ...publishing, ticket, entry, life),
  script(coherence.TICKET, ENTRY_KEYS.slice(1), key),
  script(coherence.STORE, ENTRY_KEYS, run, ticket, key, entry, life),
  script(coherence.SYNC, [...ENTRY_KEYS.slice(1), ...BANS], run),
  script(coherence.BAN, BANS, run, ban, is('3'), ...publishing),
  script(coherence.ENTER, BANS, run, era, fc.constantFrom('era-1', 'era-2'), ...publishing, is('3')).map(
    ordered,
  ),
  script(
    coherence.RENEW,
    MEMBERS,
    member,
    is('2500'),
    flag,
    lease,
    run,
    now,
    is('2000'),
    is('PUBLISH'),
    is('c'),
  ),
  script(coherence.EXPEL, MEMBERS, member, member),
  script(PATIENT_LOCK, LOCK_KEYS, id, life, writer),
  script(RENEW_LOCK, HOLDER_KEYS.slice(0, 1), id, life),
  script(UNLOCK, HOLDER_KEYS, id, life),
  script(STORE_UNCLAIMED, ['list'], writer, life),
  fc.constantFrom<Step[]>(
    FULL_STATE,
    ['HSET', '{e}state', 'run', 'run-1', 'seq', '5', 'floor', '5'],
    ['HDEL', '{e}state', 'f:21.T/1'],
    ['DEL', '{e}state'],
    ['DEL', '{e}entry'],
    ['ZADD', 'members', '1700000000000', 'm'],
    ['ZREM', 'members', 'm'],
    ['SET', '{l}trace', 'free', 'PX', String(LIFE_STEP_MS)],
    ['SET', '{l}trace', '1700000000456', 'PX', String(LIFE_STEP_MS)],
    ['SET', '{e}state', 'of another type'],
  ),
);

/** Sorts the fields of a hash, which have no defined order. */
function ordered([name, source = '', ...rest]: Step): Step {
  const sorted = source.replace(
    "return redis.call('HGETALL', state)",
    `local fields, pairs = redis.call('HGETALL', state), {}
     for at = 1, #fields, 2 do pairs[#pairs + 1] = fields[at] .. '=' .. fields[at + 1] end
     table.sort(pairs)
     return pairs`,
  );
  return [name, sorted, ...rest];
}
