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
      /** Whether the sender already had the same record: if the publication fails, it is pending and not awaited. */
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

/** A hard ban of every key, for when any entry may be outdated. */
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

/** The message without its number, which the script prepends. The key is last, as it may contain any character. */
export function formatChange(change: Change, { member, call }: { member: string; call: string }): string {
  const [name, key] =
    change.kind === 'ban' ? [depthOf(change), change.prefix] : [fenceOf(change), change.key];
  return `${member} ${call || NONE} ${change.kind} ${name} ${'lifeMs' in change ? change.lifeMs : 0} ${key}`;
}

const depthOf = ({ isSoft }: BanChange): string => (isSoft ? 'soft' : 'hard');
const fenceOf = (change: KeyChange): string => ('fence' in change ? change.fence : NONE);

/** A number has at most 16 digits (microseconds of this century): a larger one would hide every gap after it. */
const LINE = /^(\d{1,16}) (\S+) (\S+) (\S+) (\S+) (\d+) ([^]*)$/;

/** Undefined for an unknown kind, which another release may have published. */
export function parseMessage(line: string): ReceivedMessage | undefined {
  const [whole, number, member = '', call = '', kind, name = '', life, key = ''] = LINE.exec(line) ?? [];
  if (whole === undefined) return undefined;
  const seq = Number(number);
  const parse = (): Change | undefined => {
    switch (kind) {
      case 'raise':
      case 'unknown':
        return { kind, key, fence: name, lifeMs: Number(life) };
      case 'changed':
      case 'unchanged':
        return { kind, key, fence: name };
      case 'forget':
      case 'soften':
        return { kind, key };
      default:
        return kind === 'ban' ? { kind, prefix: key, isSoft: name === 'soft', number: seq } : undefined;
    }
  };
  const change = parse();
  return change && { seq, member, call: call === NONE ? '' : call, change };
}
