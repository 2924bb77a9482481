// Hash and list commands of the simulated Redis. A hash lists fields in insertion order, as Redis does for
// small hashes. Callers must not rely on that order.
import { type Command, command, pairs } from './redis-command.js';
import type { Keyspace } from './redis-keyspace.js';
import { NotSimulated, ReplyError, type Reply, toInteger } from './redis-reply.js';
import { rangeOf } from './redis-strings.js';

const readHash = (keyspace: Keyspace, key: string): ReadonlyMap<string, string> =>
  keyspace.read(key, 'hash') ?? new Map<string, string>();

const openHash = (keyspace: Keyspace, key: string): Map<string, string> =>
  keyspace.open(key, 'hash', () => new Map<string, string>());

function setFields(keyspace: Keyspace, [key = '', ...rest]: readonly string[]): Reply {
  if (rest.length % 2 === 1) throw new ReplyError("ERR wrong number of arguments for 'hset' command");
  const hash = openHash(keyspace, key);
  const before = hash.size;
  for (const [field, value] of pairs(rest)) hash.set(field, value);
  return hash.size - before;
}

function deleteFields(keyspace: Keyspace, [key = '', ...fields]: readonly string[]): Reply {
  const hash = keyspace.read(key, 'hash');
  const deleted = fields.filter((field) => hash?.delete(field)).length;
  keyspace.dropIfEmpty(key);
  return deleted;
}

function increaseField(keyspace: Keyspace, [key = '', field = '', by = '']: readonly string[]): Reply {
  const change = toInteger(by);
  const stored = readHash(keyspace, key).get(field) ?? '0';
  const value = toInteger(stored, () => new ReplyError('ERR hash value is not an integer')) + change;
  if (!Number.isSafeInteger(value)) throw new NotSimulated('integers beyond 2^53');
  openHash(keyspace, key).set(field, String(value));
  return value;
}

function setNewField(keyspace: Keyspace, [key = '', field = '', value = '']: readonly string[]): Reply {
  if (readHash(keyspace, key).has(field)) return 0;
  openHash(keyspace, key).set(field, value);
  return 1;
}

export const HASH_COMMANDS: Record<string, Command> = {
  HGET: command(
    'read',
    2,
    ({ keyspace }, [key = '', field = '']) => readHash(keyspace, key).get(field) ?? null,
  ),
  HMGET: command('read', { atLeast: 2 }, ({ keyspace }, [key = '', ...fields]) => {
    const hash = readHash(keyspace, key);
    return fields.map((field) => hash.get(field) ?? null);
  }),
  HSET: command('grow', { atLeast: 3 }, ({ keyspace }, args) => setFields(keyspace, args)),
  HSETNX: command('grow', 3, ({ keyspace }, args) => setNewField(keyspace, args)),
  HDEL: command('write', { atLeast: 2 }, ({ keyspace }, args) => deleteFields(keyspace, args)),
  HLEN: command('read', 1, ({ keyspace }, [key = '']) => readHash(keyspace, key).size),
  HEXISTS: command('read', 2, ({ keyspace }, [key = '', field = '']) =>
    readHash(keyspace, key).has(field) ? 1 : 0,
  ),
  HKEYS: command('read', 1, ({ keyspace }, [key = '']) => [...readHash(keyspace, key).keys()]),
  HVALS: command('read', 1, ({ keyspace }, [key = '']) => [...readHash(keyspace, key).values()]),
  HGETALL: command('read', 1, ({ keyspace }, [key = '']) => [...readHash(keyspace, key)].flat()),
  HINCRBY: command('grow', 3, ({ keyspace }, args) => increaseField(keyspace, args)),
};

function push(keyspace: Keyspace, [key = '', ...items]: readonly string[]): Reply {
  return keyspace.open(key, 'list', () => []).push(...items);
}

function pop(keyspace: Keyspace, [key = '', count]: readonly string[]): Reply {
  if (count !== undefined) throw new NotSimulated('LPOP with a count');
  const item = keyspace.read(key, 'list')?.shift() ?? null;
  keyspace.dropIfEmpty(key);
  return item;
}

function listRange(keyspace: Keyspace, [key = '', first = '', last = '']: readonly string[]): Reply {
  const [from, to] = [toInteger(first), toInteger(last)];
  const items = keyspace.read(key, 'list') ?? [];
  return items.slice(...rangeOf(items.length, from, to));
}

export const LIST_COMMANDS: Record<string, Command> = {
  RPUSH: command('grow', { atLeast: 2 }, ({ keyspace }, args) => push(keyspace, args)),
  LPOP: command('write', { atLeast: 1 }, ({ keyspace }, args) => pop(keyspace, args)),
  LRANGE: command('read', 3, ({ keyspace }, args) => listRange(keyspace, args)),
  LLEN: command('read', 1, ({ keyspace }, [key = '']) => keyspace.read(key, 'list')?.length ?? 0),
};
