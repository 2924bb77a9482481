// Sorted-set commands of the simulated Redis.
import { type Command, command, pairs } from './redis-command.js';
import type { Keyspace } from './redis-keyspace.js';
import {
  NotSimulated,
  ReplyError,
  type Reply,
  formatDouble,
  notAnInteger,
  syntaxError,
  toFloat,
  toInteger,
} from './redis-reply.js';
import { rangeOf } from './redis-strings.js';
import { type Scored, SortedSet } from './redis-sorted-set.js';

const ADD_OPTIONS = new Set(['NX', 'XX', 'GT', 'LT', 'CH', 'INCR']);

const readSorted = (keyspace: Keyspace, key: string): readonly Scored[] =>
  keyspace.read(key, 'zset')?.sorted ?? [];

function toScore(text: string): number {
  const score = toFloat(text);
  if (Number.isNaN(score)) throw new ReplyError('ERR value is not a valid float');
  return score;
}

function add(keyspace: Keyspace, [key = '', ...rest]: readonly string[]): Reply {
  const option = rest[0]?.toUpperCase() ?? '';
  if (ADD_OPTIONS.has(option)) throw new NotSimulated(`ZADD ${option}`);
  if (rest.length % 2 === 1) throw syntaxError();
  const scores = pairs(rest).map(([score, member]): [string, number] => [member, toScore(score)]);
  const set = keyspace.open(key, 'zset', () => new SortedSet());
  const before = set.size;
  for (const [member, score] of scores) set.set(member, score);
  return set.size - before;
}

function removeAll(keyspace: Keyspace, key: string, members: readonly string[]): Reply {
  const set = keyspace.read(key, 'zset');
  const removed = members.filter((member) => set?.delete(member)).length;
  keyspace.dropIfEmpty(key);
  return removed;
}

/** Returns a filter for scores between two bounds. A bound with "(" is exclusive. */
function between(min: string, max: string): (scored: Scored) => boolean {
  const [from, isFromOut] = toEnd(min);
  const [to, isToOut] = toEnd(max);
  return ({ score }) => (isFromOut ? score > from : score >= from) && (isToOut ? score < to : score <= to);
}

function toEnd(text: string): [end: number, isOut: boolean] {
  const isOut = text.startsWith('(');
  // A bound, unlike a score, may start with spaces.
  const end = toFloat((isOut ? text.slice(1) : text).trimStart());
  if (Number.isNaN(end)) throw new ReplyError('ERR min or max is not a float');
  return [end, isOut];
}

const withScores = (scored: readonly Scored[], areWanted: boolean): Reply =>
  scored.flatMap(({ member, score }) => (areWanted ? [member, formatDouble(score)] : [member]));

function range(keyspace: Keyspace, [key = '', first = '', last = '', ...options]: readonly string[]): Reply {
  const given = options.map((option) => option.toUpperCase());
  const beyond = given.find((option) => !['WITHSCORES', 'REV'].includes(option));
  if (beyond !== undefined) throw new NotSimulated(`ZRANGE ${beyond}`);
  const [from, to] = [toInteger(first), toInteger(last)];
  const sorted = readSorted(keyspace, key);
  const ordered = given.includes('REV') ? sorted.toReversed() : sorted;
  return withScores(ordered.slice(...rangeOf(sorted.length, from, to)), given.includes('WITHSCORES'));
}

interface ScoreOptions {
  areScoresWanted: boolean;
  offset: number;
  count: number;
}

function scoreOptions(options: readonly string[]): ScoreOptions {
  const found = { areScoresWanted: false, offset: 0, count: -1 };
  for (let at = 0; at < options.length; at++) {
    const option = options[at]!.toUpperCase();
    if (option === 'WITHSCORES') {
      found.areScoresWanted = true;
    } else if (option === 'LIMIT' && at + 2 < options.length) {
      found.offset = toInteger(options[++at]!, notAnInteger);
      found.count = toInteger(options[++at]!, notAnInteger);
    } else {
      throw syntaxError();
    }
  }
  return found;
}

function rangeByScore(
  keyspace: Keyspace,
  [key = '', min = '', max = '', ...options]: readonly string[],
): Reply {
  const isIn = between(min, max);
  const { areScoresWanted, offset, count } = scoreOptions(options);
  const found = readSorted(keyspace, key).filter(isIn);
  if (offset < 0) return [];
  return withScores(found.slice(offset, count < 0 ? undefined : offset + count), areScoresWanted);
}

function removeByScore(keyspace: Keyspace, [key = '', min = '', max = '']: readonly string[]): Reply {
  const isIn = between(min, max);
  const found = readSorted(keyspace, key).filter(isIn);
  return removeAll(keyspace, key, found.map(({ member }) => member)); // oxfmt-ignore
}

function removeByRank(keyspace: Keyspace, [key = '', first = '', last = '']: readonly string[]): Reply {
  const [from, to] = [toInteger(first), toInteger(last)];
  const sorted = readSorted(keyspace, key);
  const found = sorted.slice(...rangeOf(sorted.length, from, to));
  return removeAll(keyspace, key, found.map(({ member }) => member)); // oxfmt-ignore
}

function scoreOf(keyspace: Keyspace, key: string, member: string): Reply {
  const score = keyspace.read(key, 'zset')?.score(member);
  return score === undefined ? null : formatDouble(score);
}

export const SORTED_SET_COMMANDS: Record<string, Command> = {
  ZADD: command('grow', { atLeast: 3 }, ({ keyspace }, args) => add(keyspace, args)),
  ZREM: command('write', { atLeast: 2 }, ({ keyspace }, [key = '', ...members]) =>
    removeAll(keyspace, key, members),
  ),
  ZSCORE: command('read', 2, ({ keyspace }, [key = '', member = '']) => scoreOf(keyspace, key, member)),
  ZCARD: command('read', 1, ({ keyspace }, [key = '']) => readSorted(keyspace, key).length),
  ZCOUNT: command('read', 3, ({ keyspace }, [key = '', min = '', max = '']) => {
    const isIn = between(min, max);
    return readSorted(keyspace, key).filter(isIn).length;
  }),
  ZRANGE: command('read', { atLeast: 3 }, ({ keyspace }, args) => range(keyspace, args)),
  ZRANGEBYSCORE: command('read', { atLeast: 3 }, ({ keyspace }, args) => rangeByScore(keyspace, args)),
  ZREMRANGEBYSCORE: command('write', 3, ({ keyspace }, args) => removeByScore(keyspace, args)),
  ZREMRANGEBYRANK: command('write', 3, ({ keyspace }, args) => removeByRank(keyspace, args)),
};
