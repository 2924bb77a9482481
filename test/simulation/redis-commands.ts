// All commands of the simulated Redis that send one reply. This file defines generic and server commands.
import { type Command, type ServerView, command } from './redis-command.js';
import { HASH_COMMANDS, LIST_COMMANDS } from './redis-hashes.js';
import type { Keyspace } from './redis-keyspace.js';
import { NotSimulated, OK, ReplyError, type Reply, Status, toInteger } from './redis-reply.js';
import { SORTED_SET_COMMANDS } from './redis-sorted-sets.js';
import { STREAM_COMMANDS } from './redis-streams.js';
import { STRING_COMMANDS } from './redis-strings.js';

const count = (keys: readonly string[], isCounted: (key: string) => boolean): number =>
  keys.filter((key) => isCounted(key)).length;

type Condition = (before: number | undefined, at: number) => boolean;

/** PEXPIRE options that select when the new expiry applies. */
const CONDITIONS: Record<string, Condition> = {
  NX: (before) => before === undefined,
  XX: (before) => before !== undefined,
  GT: (before, at) => before !== undefined && at > before,
  LT: (before, at) => before === undefined || at < before,
};

/** Sets the expiry to `from` plus a number of units. */
function expire(keyspace: Keyspace, args: readonly string[], from: number, unitMs: number): Reply {
  const [key = '', units = '', option] = args;
  const condition = option === undefined ? () => true : CONDITIONS[option.toUpperCase()];
  if (condition === undefined) throw new ReplyError(`ERR Unsupported option ${option ?? ''}`);
  const at = from + unitMs * toInteger(units);
  return keyspace.has(key) && condition(keyspace.expireAt(key), at) && keyspace.setExpiry(key, at) ? 1 : 0;
}

function lifeLeft(keyspace: Keyspace, key: string): number {
  if (!keyspace.has(key)) return -2;
  const expireAt = keyspace.expireAt(key);
  return expireAt === undefined ? -1 : Math.max(0, expireAt - keyspace.now);
}

function persist(keyspace: Keyspace, key: string): Reply {
  if (keyspace.expireAt(key) === undefined) return 0;
  keyspace.setExpiry(key, undefined);
  return 1;
}

const KEY_COMMANDS: Record<string, Command> = {
  DEL: command('write', { atLeast: 1 }, ({ keyspace }, keys) => count(keys, (key) => keyspace.delete(key))),
  UNLINK: command('write', { atLeast: 1 }, ({ keyspace }, keys) =>
    count(keys, (key) => keyspace.delete(key)),
  ),
  EXISTS: command('read', { atLeast: 1 }, ({ keyspace }, keys) => count(keys, (key) => keyspace.has(key))),
  TYPE: command('read', 1, ({ keyspace }, [key = '']) => new Status(keyspace.typeOf(key))),
  PERSIST: command('write', 1, ({ keyspace }, [key = '']) => persist(keyspace, key)),
  PTTL: command('read', 1, ({ keyspace }, [key = '']) => lifeLeft(keyspace, key)),
  TTL: command('read', 1, ({ keyspace }, [key = '']) => {
    const left = lifeLeft(keyspace, key);
    return left < 0 ? left : Math.floor((left + 500) / 1000);
  }),
  EXPIRE: command('write', { atLeast: 2 }, ({ keyspace }, args) =>
    expire(keyspace, args, keyspace.now, 1000),
  ),
  PEXPIRE: command('write', { atLeast: 2 }, ({ keyspace }, args) => expire(keyspace, args, keyspace.now, 1)),
  PEXPIREAT: command('write', { atLeast: 2 }, ({ keyspace }, args) => expire(keyspace, args, 0, 1)),
};

function time({ timeMicros }: ServerView): Reply {
  const micros = timeMicros();
  return [String(Math.floor(micros / 1e6)), String(micros % 1e6)];
}

function scriptCommand({ loadScript }: ServerView, [name = '', source = '']: readonly string[]): Reply {
  if (name.toUpperCase() !== 'LOAD') throw new NotSimulated(`SCRIPT ${name}`);
  return loadScript(source);
}

const SERVER_COMMANDS: Record<string, Command> = {
  PING: { ...command('read', 0, (_, [text]) => text ?? new Status('PONG')), max: 1 },
  // The client closes the connection.
  QUIT: command('read', 0, () => OK),
  TIME: command('read', 0, time),
  INFO: command('read', { atLeast: 0 }, ({ info }, [section = 'default']) => info(section.toLowerCase())),
  DBSIZE: command('read', 0, ({ keyspace }) => keyspace.size),
  FLUSHALL: command('write', { atLeast: 0 }, ({ keyspace }) => {
    keyspace.clear();
    return OK;
  }),
  PUBLISH: command('read', 2, ({ publish }, [channel = '', text = '']) => publish(channel, text, false)),
  SPUBLISH: command('read', 2, ({ publish }, [channel = '', text = '']) => publish(channel, text, true)),
  SCRIPT: command('read', { atLeast: 1 }, scriptCommand),
};

export const COMMANDS: ReadonlyMap<string, Command> = new Map(
  Object.entries({
    ...KEY_COMMANDS,
    ...STRING_COMMANDS,
    ...HASH_COMMANDS,
    ...LIST_COMMANDS,
    ...SORTED_SET_COMMANDS,
    ...STREAM_COMMANDS,
    ...SERVER_COMMANDS,
  }),
);

/** Commands that Redis rejects inside a script. */
export const NOT_IN_SCRIPTS: ReadonlySet<string> = new Set(['SCRIPT', 'EVAL', 'EVALSHA']);
