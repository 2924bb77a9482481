// String commands of the simulated Redis.
import { type Command, command } from './redis-command.js';
import type { Keyspace } from './redis-keyspace.js';
import { NotSimulated, OK, ReplyError, type Reply, syntaxError, toInteger } from './redis-reply.js';

const LIFE_UNITS: Record<string, number> = { PX: 1, EX: 1000 };
/** Options of SET that the simulation lacks. */
const ELSEWHERE = new Set(['GET', 'KEEPTTL', 'EXAT', 'PXAT']);

/** Converts indexes that may be negative, as in GETRANGE and ZRANGE, to a range [from, end). */
export function rangeOf(size: number, first: number, last: number): [number, number] {
  const from = Math.max(0, first < 0 ? size + first : first);
  const to = Math.min(size - 1, last < 0 ? size + last : last);
  return from > to ? [0, 0] : [from, to + 1];
}

function set(keyspace: Keyspace, [key = '', value = '', ...options]: readonly string[]): Reply {
  const { lifeMs, condition } = setOptions(options);
  if (condition !== undefined && keyspace.has(key) !== (condition === 'XX')) return null;
  keyspace.set(key, value, lifeMs === undefined ? undefined : keyspace.now + lifeMs);
  return OK;
}

interface SetOptions {
  lifeMs?: number;
  condition?: 'NX' | 'XX';
}

function setOptions(options: readonly string[]): SetOptions {
  const found: SetOptions = {};
  for (let at = 0; at < options.length; at++) {
    const option = options[at]!.toUpperCase();
    const unitMs = LIFE_UNITS[option];
    const life = options[at + 1];
    if (option === 'NX' || option === 'XX') {
      found.condition = option;
    } else if (unitMs !== undefined && life !== undefined) {
      found.lifeMs = unitMs * lifeOf(life);
      at++;
    } else {
      throw ELSEWHERE.has(option) ? new NotSimulated(`SET ${option}`) : syntaxError();
    }
  }
  return found;
}

function lifeOf(text: string): number {
  const life = toInteger(text);
  if (life <= 0) throw new ReplyError("ERR invalid expire time in 'set' command");
  return life;
}

function setRange(keyspace: Keyspace, [key = '', offset = '', part = '']: readonly string[]): Reply {
  const from = toInteger(offset);
  if (from < 0) throw new ReplyError('ERR offset is out of range');
  const before = keyspace.read(key, 'string') ?? '';
  if (part === '') return before.length;
  const value = before.slice(0, from).padEnd(from, '\0') + part + before.slice(from + part.length);
  keyspace.change(key, value);
  return value.length;
}

function getRange(keyspace: Keyspace, [key = '', first = '', last = '']: readonly string[]): Reply {
  const [from, to] = [toInteger(first), toInteger(last)];
  const value = keyspace.read(key, 'string') ?? '';
  if (from < 0 && to < 0 && from > to) return '';
  // Both bounds are clamped to the first byte.
  const end = Math.max(0, to < 0 ? value.length + to : to);
  return value.slice(...rangeOf(value.length, from, end));
}

function increase(keyspace: Keyspace, key: string, by: number): Reply {
  const value = toInteger(keyspace.read(key, 'string') ?? '0') + by;
  if (!Number.isSafeInteger(value)) throw new NotSimulated('integers beyond 2^53');
  keyspace.change(key, String(value));
  return value;
}

function append(keyspace: Keyspace, [key = '', part = '']: readonly string[]): Reply {
  const value = (keyspace.read(key, 'string') ?? '') + part;
  keyspace.change(key, value);
  return value.length;
}

const readAny = (keyspace: Keyspace, key: string): Reply =>
  keyspace.typeOf(key) === 'string' ? (keyspace.read(key, 'string') ?? null) : null;

export const STRING_COMMANDS: Record<string, Command> = {
  GET: command('read', 1, ({ keyspace }, [key = '']) => keyspace.read(key, 'string') ?? null),
  MGET: command('read', { atLeast: 1 }, ({ keyspace }, keys) => keys.map((key) => readAny(keyspace, key))),
  SET: command('grow', { atLeast: 2 }, ({ keyspace }, args) => set(keyspace, args)),
  APPEND: command('grow', 2, ({ keyspace }, args) => append(keyspace, args)),
  STRLEN: command('read', 1, ({ keyspace }, [key = '']) => keyspace.read(key, 'string')?.length ?? 0),
  GETRANGE: command('read', 3, ({ keyspace }, args) => getRange(keyspace, args)),
  SETRANGE: command('grow', 3, ({ keyspace }, args) => setRange(keyspace, args)),
  INCR: command('grow', 1, ({ keyspace }, [key = '']) => increase(keyspace, key, 1)),
  INCRBY: command('grow', 2, ({ keyspace }, [key = '', by = '']) => increase(keyspace, key, toInteger(by))),
};
