// The messages of coherence: changes of keys and bans, and their text form on a Redis channel.
import type { NumberedBan } from './bans.js';

/** A change of one key, by a write or an operator. `fence` names a raised fence: `<member>/<number>`. */
export type KeyChange =
  | { kind: 'raise' | 'unknown'; key: string; fence: string; lifeMs: number }
  | { kind: 'changed' | 'unchanged'; key: string; fence: string }
  | { kind: 'soften'; key: string }
  | {
      kind: 'forget';
      key: string;
      /** Stored instead of the entry, in the same step. */
      replacement?: Replacement | undefined;
      /** The sender has held the same record: what it cannot publish is pending, and is not waited for. */
      isUnchanged?: boolean | undefined;
    };

/** An authoritative answer for Redis: refused when its ticket is void. */
export interface Replacement {
  run: string;
  seq: number;
  bytes: Buffer;
  lifeMs: number;
}

/** A change of all keys that begin with `prefix`. Redis assigns the `number`; it is 0 without Redis. */
export interface BanChange {
  kind: 'ban';
  prefix: string;
  isSoft: boolean;
  number: number;
}

export type Change = KeyChange | BanChange;

/** Every entry may be outdated. */
export const BAN_ALL: BanChange = { kind: 'ban', prefix: '', isSoft: false, number: 0 };

/** The bans that Redis lists. */
export interface KnownBans {
  kind: 'bans';
  /** The server run that the numbers belong to: numbers of two runs cannot be compared. */
  run: string;
  /** The number of the newest ban. */
  seq: number;
  /** Up to this number every key counts as banned. */
  floor: number;
  bans: NumberedBan[];
}

/** `distrust`: messages of the group, or of any group, may have been missed. */
export type Message = Change | KnownBans | { kind: 'distrust'; group?: number };

/** A change as it arrives from Redis. */
export interface ReceivedMessage {
  seq: number;
  member: string;
  /** Id for the acknowledgement; '' when the member expects none. */
  call: string;
  change: Change;
}

/** A raised fence and a refused write do not make an entry wrong. */
export const isInvalidation = (change: Change): boolean =>
  change.kind !== 'raise' && change.kind !== 'unchanged';

/** The member that raised the fence. */
export const memberOf = (fence: string): string => fence.slice(0, fence.indexOf('/'));

const NONE = '-';

/** The message without its number, which the script puts in front. The key is last, as it may contain any character. */
export function formatChange(change: Change, { member, call }: { member: string; call: string }): string {
  const [second, third, key] = fieldsToFormat(change);
  return `${member} ${call || NONE} ${change.kind} ${second} ${third} ${key}`;
}

function fieldsToFormat(change: Change): [second: string, third: number, key: string] {
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

/** A number has at most 16 digits (microseconds of this century): a larger one would hide every gap after it. */
const LINE = /^(\d{1,16}) (\S+) (\S+) (\S+) (\S+) (\d+) ([^]*)$/;

/** Undefined: the kind is not known, as another release may have published it. */
export function parseMessage(line: string): ReceivedMessage | undefined {
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

interface MessageFields {
  kind: string;
  second: string;
  lifeMs: number;
  key: string;
  number: number;
}

function changeOf({ kind, second, lifeMs, key, number }: MessageFields): Change | undefined {
  switch (kind) {
    case 'raise':
    case 'unknown':
      return { kind, key, fence: second, lifeMs };
    case 'changed':
    case 'unchanged':
      return { kind, key, fence: second };
    case 'forget':
    case 'soften':
      return { kind, key };
    default:
      return kind === 'ban' ? { kind, prefix: key, isSoft: second === 'soft', number } : undefined;
  }
}
