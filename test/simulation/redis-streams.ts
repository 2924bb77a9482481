// Stream commands of the simulated Redis.
import { type Command, command, pairs } from './redis-command.js';
import type { Keyspace } from './redis-keyspace.js';
import { NotSimulated, ReplyError, type Reply, toInteger } from './redis-reply.js';

export interface Stream {
  lastId: string;
  entries: (readonly [id: string, fields: string[]])[];
}

const FIRST_ID = '0-0';
const ID = /^(\d+)-(\d+)$/;

/** Parses an id. @throws ReplyError if Redis would reject the text, NotSimulated for an id without both numbers */
function idOf(text: string): [number, number] {
  const [, time, number] = ID.exec(text) ?? [];
  if (time === undefined || number === undefined) throw new NotSimulated(`the stream id ${text}`);
  return [toInteger(time), toInteger(number)];
}

function isAfter(id: string, other: string): boolean {
  const [[time, number], [otherTime, otherNumber]] = [idOf(id), idOf(other)];
  return time > otherTime || (time === otherTime && number > otherNumber);
}

function add(keyspace: Keyspace, [key = '', id = '', ...fields]: readonly string[]): Reply {
  if (fields.length % 2 !== 0) throw new ReplyError("ERR wrong number of arguments for 'xadd' command");
  if (id === FIRST_ID) throw new ReplyError('ERR The ID specified in XADD must be greater than 0-0');
  const last = keyspace.read(key, 'stream')?.lastId ?? FIRST_ID;
  if (!isAfter(id, last))
    throw new ReplyError('ERR The ID specified in XADD is equal or smaller than the target stream top item');
  const stream = keyspace.open(key, 'stream', () => ({ lastId: FIRST_ID, entries: [] }));
  stream.entries.push([id, pairs(fields).flat()]);
  stream.lastId = id;
  return id;
}

/** Trims to the exact length with ~ too, with which Redis may keep some more entries. */
function trim(keyspace: Keyspace, [key = '', ...how]: readonly string[]): Reply {
  const [, length = ''] = /^maxlen (?:[~=] )?(\S+)$/i.exec(how.join(' ')) ?? [];
  if (length === '') throw new NotSimulated(`XTRIM ${how.join(' ')}`);
  const maximum = toInteger(length);
  if (maximum < 0) throw new ReplyError('ERR The MAXLEN argument must be >= 0.');
  const entries = keyspace.read(key, 'stream')?.entries ?? [];
  return entries.splice(0, Math.max(0, entries.length - maximum)).length;
}

function lastEntries(keyspace: Keyspace, [key = '', ...how]: readonly string[]): Reply {
  const [, count = ''] = /^\+ - count (\S+)$/i.exec(how.join(' ')) ?? [];
  if (count === '') throw new NotSimulated(`XREVRANGE ${how.join(' ')}`);
  const entries = keyspace.read(key, 'stream')?.entries ?? [];
  return entries.toReversed().slice(0, toInteger(count)).map(asReply);
}

function readAfter(keyspace: Keyspace, [, count = '', , key = '', id = '']: readonly string[]): Reply {
  const entries = keyspace.read(key, 'stream')?.entries.filter(([each]) => isAfter(each, id)) ?? [];
  const read = entries.slice(0, toInteger(count)).map(asReply);
  return read.length === 0 ? null : [[key, read]];
}

const asReply = ([id, fields]: Stream['entries'][number]): Reply => [id, [...fields]];

export const STREAM_COMMANDS: Record<string, Command> = {
  XADD: command('grow', { atLeast: 4 }, ({ keyspace }, args) => add(keyspace, args)),
  XTRIM: command('write', { atLeast: 3 }, ({ keyspace }, args) => trim(keyspace, args)),
  XLEN: command('read', 1, ({ keyspace }, [key = '']) => keyspace.read(key, 'stream')?.entries.length ?? 0),
  XREVRANGE: command('read', { atLeast: 3 }, ({ keyspace }, args) => lastEntries(keyspace, args)),
  /** As the feed sends it: COUNT, a number, STREAMS, a key, an id. */
  XREAD: command('read', 5, ({ keyspace }, args) => readAfter(keyspace, args)),
};
