// Applies changes that were published, here or elsewhere, to the cache of this process.
import type { MemoryStore } from '../memory/memory-store.js';
import { Bans, type NumberedBan } from './bans.js';
import { type KeyChange, type KnownBans, type Message, isInvalidation } from './message.js';

export interface ApplyDeps {
  memory: MemoryStore;
  now: () => number;
  /** No load of the key is to be joined any more. */
  onInvalidated: (key: string) => void;
  /** The same for all keys that begin so. */
  onBanned: (prefix: string) => void;
}

export interface Applied {
  apply: (message: Message) => void;
  /** The bans of Redis; undefined while they have not been read. */
  bans: () => Bans | undefined;
}

/** More bans than can arrive while those of Redis are read. */
const MAX_ARRIVED = 10_000;

export function createApply({ memory, now, onInvalidated, onBanned }: ApplyDeps): Applied {
  let bans = new Bans();
  /** Since the bans of Redis were read. */
  const arrived = new Map<number, NumberedBan>();
  /** Of the list in Redis; undefined while it has not been read. */
  let floor: number | undefined;
  const ban = (prefix: string, isSoft: boolean): void => {
    memory.ban({ prefix, isSoft });
    onBanned(prefix);
  };
  const distrust = (group?: number): void => {
    memory.distrust(group);
    onBanned('');
  };
  /** Only what arrives while the bans are read counts: the oldest need not be kept. */
  const note = (message: NumberedBan): void => {
    const [oldest] = arrived.keys();
    if (oldest !== undefined && arrived.size >= MAX_ARRIVED) arrived.delete(oldest);
    arrived.set(message.number, message);
  };
  const takeOver = (known: KnownBans): void => {
    // Bans up to the floor are not listed any more: one of them may have been missed.
    if (known.floor !== floor) distrust();
    // Another server, whose clock may be behind: its numbers are not older ones.
    if (known.run !== bans.run) bans = bansOf(known, arrived);
    arrived.clear();
    floor = known.floor;
    bans.raiseFloor(floor);
    for (const each of known.bans) if (bans.add(each)) ban(each.prefix, each.isSoft);
  };

  function apply(message: Message): void {
    switch (message.kind) {
      case 'bans':
        takeOver(message);
        break;
      case 'ban':
        // The same ban may arrive from Redis and from the process that made it.
        if (!bans.has(message.number)) ban(message.prefix, message.isSoft);
        note(message);
        bans.add(message);
        break;
      case 'distrust':
        distrust(message.group);
        break;
      default:
        applyToKey(message, memory, now());
        if (isInvalidation(message)) onInvalidated(message.key);
    }
  }

  return { apply, bans: () => (floor === undefined ? undefined : bans) };
}

/** Of those that arrived, some may be newer than what was read: their numbers follow. Others are of the server before. */
function bansOf({ run, seq }: KnownBans, arrived: ReadonlyMap<number, NumberedBan>): Bans {
  const bans = new Bans(run);
  for (let ban = arrived.get(seq + 1); ban !== undefined; ban = arrived.get(ban.number + 1)) bans.add(ban);
  return bans;
}

function applyToKey(change: KeyChange, memory: MemoryStore, now: number): void {
  switch (change.kind) {
    case 'raise':
      memory.raise(change.key, change.fence, now + change.lifeMs);
      break;
    case 'unknown':
      // Raised again, as a process may have started since.
      memory.raise(change.key, change.fence, now + change.lifeMs);
      memory.soften(change.key);
      break;
    case 'changed':
      memory.lower(change.key, change.fence);
      memory.forget(change.key);
      break;
    case 'unchanged':
      memory.lower(change.key, change.fence);
      break;
    case 'soften':
      memory.soften(change.key);
      break;
    case 'forget':
    case 'replaced':
      memory.forget(change.key);
  }
}
