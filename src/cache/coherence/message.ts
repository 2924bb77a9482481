// Coherence messages: key changes and bans, and their text form on Redis channels.
import type { NumberedBan } from './bans.js';

/** A change of one key by a write or an operator. `fence` names a raised fence: `<member>/<number>`. */
export type KeyChange =
  | { kind: 'raise' | 'unknown'; key: string; fence: string; lifeMs: number }
  | { kind: 'changed' | 'unchanged'; key: string; fence: string }
  | { kind: 'soften'; key: string }
  | {
      kind: 'forget';
      key: string;
      /** Replaces the entry in the same step. */
      replacement?: Replacement | undefined;
      /** Whether the sender has an identical record: a failed publication is then queued, not awaited. */
      isUnchanged?: boolean | undefined;
    };

/** An authoritative answer for Redis, which refuses it if its ticket is void. */
export interface Replacement {
  run: string;
  seq: number;
  bytes: Buffer;
  lifeMs: number;
}

/** A ban whose number Redis assigns; 0 without Redis. */
export interface BanChange extends NumberedBan {
  kind: 'ban';
}

export type Change = KeyChange | BanChange;

/** Returns a ban of every key, for cases in which any entry may be outdated. */
export const banAll = (isSoft: boolean): BanChange => ({ kind: 'ban', prefix: '', isSoft, number: 0 });

/** The bans listed in Redis. */
export interface KnownBans {
  kind: 'bans';
  /** The server run that assigned the numbers. Numbers of different runs are not comparable. */
  run: string;
  /** The number of the newest ban. */
  seq: number;
  /** Every key counts as banned up to this number. */
  floor: number;
  bans: NumberedBan[];
}

/** `distrust`: messages of `group`, or of any group if `group` is undefined, may have been missed. */
export type Message = Change | KnownBans | { kind: 'distrust'; group?: number };

/** Applies a message to local memory. A change may be acknowledged once the returned promise, if any, settles. */
export type Deliver = (message: Message) => Promise<unknown> | undefined;

/** Whether a change invalidates entries; a raised fence or a refused write does not. */
export const isInvalidation = (change: Change): boolean =>
  change.kind !== 'raise' && change.kind !== 'unchanged';

export const memberOf = (fence: string): string => fence.slice(0, fence.indexOf('/'));

const NONE = '-';

/** Formats a message without its number, which the script prepends. The key, of any characters, is last. */
export const formatChange = (change: Change, { member, call }: { member: string; call: string }): string =>
  [member, call || NONE, change.kind, ...fieldsOf(change)].join(' ');

/** Returns the last fields of a message. The name is that of the fence, or the kind of the ban. */
export function fieldsOf(change: Change): [name: string, lifeMs: number, key: string] {
  if (change.kind === 'ban') return [change.isSoft ? 'soft' : 'hard', 0, change.prefix];
  return ['fence' in change ? change.fence : NONE, 'lifeMs' in change ? change.lifeMs : 0, change.key];
}

/**
 * Message numbers start at the Redis time (µs), which has 16 digits until the year 2286. A longer number is
 * invalid: recorded as the newest number, it would hide all later gaps.
 */
const LINE = /^(\d{1,16}) (\S+) (\S+) (\S+) (\S+) (\d+) ([^]*)$/;

/**
 * Parses a message; undefined for a malformed message, or for an unknown kind, which a different release may
 * have published. `call`: the acknowledgement id; '' if the sender expects none.
 */
export function parseMessage(line: string) {
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
      // Version 0.3 publishes this after it has replaced the entry in Redis, and waits for acknowledgements.
      case 'replaced':
        return { kind: 'forget', key };
      default:
        return kind === 'ban' ? { kind, prefix: key, isSoft: name === 'soft', number: seq } : undefined;
    }
  };
  const change = parse();
  return change && { seq, member, call: call === NONE ? '' : call, change };
}
