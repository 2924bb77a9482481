// What processes publish about keys, and what the memory of a process is told.
import type { NumberedBan } from './bans.js';

/** What a write or an operator does to a key. `fence` names a raised fence: `<member>/<number>`. */
export type KeyChange =
  | { kind: 'raise' | 'unknown'; key: string; fence: string; lifeMs: number }
  | { kind: 'changed' | 'unchanged'; key: string; fence: string }
  | { kind: 'forget' | 'soften' | 'replaced'; key: string };

/** All keys that begin with `prefix`. `number` is given by Redis; 0 without Redis. */
export interface BanChange {
  kind: 'ban';
  prefix: string;
  isSoft: boolean;
  number: number;
}

export type Change = KeyChange | BanChange;

/** Bans that are known in Redis, and the number up to which every key is banned. */
export interface KnownBans {
  kind: 'bans';
  /** The server run that has given the numbers: those of another are not to be compared with them. */
  run: string;
  /** The number of the newest. */
  seq: number;
  floor: number;
  bans: NumberedBan[];
}

/** `distrust`: messages about a group, or about any, may have been missed. */
export type Message = Change | KnownBans | { kind: 'distrust'; group?: number };

/** A change as it arrives from Redis. */
export interface Received {
  seq: number;
  member: string;
  /** To be acknowledged to the member; '' when it waits for nobody. */
  call: string;
  change: Change;
}

/** A raised fence, and a write that was refused, leave entries and loads in flight as good as before. */
export const isInvalidation = (change: Change): boolean =>
  change.kind !== 'raise' && change.kind !== 'unchanged';

/** The member that raised the fence. */
export const memberOf = (fence: string): string => fence.slice(0, fence.indexOf('/'));

const NONE = '-';

/** All but the number, which the script puts in front. The key is last, as it may contain anything. */
export function formatChange(change: Change, { member, call }: { member: string; call: string }): string {
  const [second, third, key] = fieldsOf(change);
  return `${member} ${call || NONE} ${change.kind} ${second} ${third} ${key}`;
}

function fieldsOf(change: Change): [second: string, third: number, key: string] {
  switch (change.kind) {
    case 'raise':
    case 'unknown':
      return [change.fence, change.lifeMs, change.key];
    case 'changed':
    case 'unchanged':
      return [change.fence, 0, change.key];
    case 'ban':
      return [change.isSoft ? 'soft' : 'hard', 0, change.prefix];
    default:
      return [NONE, 0, change.key];
  }
}

/** Numbers are microseconds of this century: a longer one would hide every gap after it. */
const LINE = /^(\d{1,16}) (\S+) (\S+) (\S+) (\S+) (\d+) ([^]*)$/;

/** Undefined: what another release may publish and this one does not know. */
export function parseMessage(line: string): Received | undefined {
  const match = LINE.exec(line);
  if (match === null) return undefined;
  const [seq, member, call, kind, second, third, key] = match.slice(1) as [
    ...[string, string, string, string],
    ...[string, string, string],
  ];
  const number = Number(seq);
  const change = changeOf({ kind, second, lifeMs: Number(third), key, number });
  return change && { seq: number, member, call: call === NONE ? '' : call, change };
}

interface Fields {
  kind: string;
  second: string;
  lifeMs: number;
  key: string;
  number: number;
}

function changeOf({ kind, second, lifeMs, key, number }: Fields): Change | undefined {
  switch (kind) {
    case 'raise':
    case 'unknown':
      return { kind, key, fence: second, lifeMs };
    case 'changed':
    case 'unchanged':
      return { kind, key, fence: second };
    case 'forget':
    case 'soften':
    case 'replaced':
      return { kind, key };
    default:
      return kind === 'ban' ? { kind, prefix: key, isSoft: second === 'soft', number } : undefined;
  }
}
