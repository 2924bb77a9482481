// Applies messages to the memory of this process, and keeps the bans that apply to entries in Redis.
import type { MemoryStore } from './memory/memory-store.js';
import { Bans, type NumberedBan } from './coherence/bans.js';
import { type KeyChange, type KnownBans, type Message, isInvalidation } from './coherence/message.js';

interface MessageApplierDeps {
  memory: MemoryStore;
  now: () => number;
  /** Called when new readers of the key must not join a load in flight. */
  onInvalidated: (key: string) => void;
  /** The same for all keys with the prefix. */
  onBanned: (prefix: string) => void;
  onDeleted?: ((deleted: Deleted) => void) | undefined;
}

/** An entry that a write or an operator has deleted, or all entries with a prefix. */
export type Deleted = { key: string } | { prefix: string };

export interface MessageApplier {
  apply: (message: Message) => void;
  /** The bans that Redis lists; undefined until they have been read. */
  bans: () => Bans | undefined;
}

const DELETES: ReadonlySet<string> = new Set<KeyChange['kind']>(['changed', 'forget']);

/** Maximum size of `arrived`: more bans than can arrive while the list is read from Redis. */
const MAX_ARRIVED = 10_000;

export function createMessageApplier({
  memory,
  now,
  onInvalidated,
  onBanned,
  onDeleted = () => undefined,
}: MessageApplierDeps): MessageApplier {
  let bans = new Bans();
  /** Bans that were received since the list was last read, by number. */
  const arrived = new Map<number, NumberedBan>();
  /** The floor of the list in Redis; undefined until it has been read. */
  let floor: number | undefined;
  const ban = (prefix: string, isSoft: boolean): void => {
    memory.ban({ prefix, isSoft });
    if (!isSoft) onDeleted({ prefix });
    onBanned(prefix);
  };
  const distrust = (group?: number): void => {
    memory.distrust(group);
    onBanned('');
  };
  /** Only bans that arrive while the list is read matter, so the oldest may be dropped. */
  const recordArrival = (message: NumberedBan): void => {
    const [oldest] = arrived.keys();
    if (oldest !== undefined && arrived.size >= MAX_ARRIVED) arrived.delete(oldest);
    arrived.set(message.number, message);
  };
  const adoptBans = (known: KnownBans): void => {
    // Bans up to the floor are not listed: this process may have missed one of them.
    if (known.floor !== floor) distrust();
    // Another server run: its numbers cannot be compared with the known ones.
    if (known.run !== bans.run) bans = bansAfter(known, arrived);
    arrived.clear();
    floor = known.floor;
    bans.raiseFloor(floor);
    for (const each of known.bans) if (bans.add(each)) ban(each.prefix, each.isSoft);
  };

  function apply(message: Message): void {
    switch (message.kind) {
      case 'bans':
        adoptBans(message);
        break;
      case 'ban':
        // The same ban may arrive from Redis and from the process that published it.
        if (!bans.has(message.number)) ban(message.prefix, message.isSoft);
        recordArrival(message);
        bans.add(message);
        break;
      case 'distrust':
        distrust(message.group);
        break;
      default:
        applyToKey(message, memory, now());
        if (DELETES.has(message.kind)) onDeleted({ key: message.key });
        if (isInvalidation(message)) onInvalidated(message.key);
    }
  }

  return { apply, bans: () => (floor === undefined ? undefined : bans) };
}

/** Keeps the received bans whose numbers follow those of the list. The others belong to the previous run. */
function bansAfter({ run, seq }: KnownBans, arrived: ReadonlyMap<number, NumberedBan>): Bans {
  const bans = new Bans(run);
  for (let ban = arrived.get(seq + 1); ban !== undefined; ban = arrived.get(ban.number + 1)) bans.add(ban);
  return bans;
}

function applyToKey(change: KeyChange, memory: MemoryStore, now: number): void {
  const { kind, key } = change;
  // `unknown` raises the fence again for a process that has started since.
  if (kind === 'raise' || kind === 'unknown') memory.raiseFence(key, change.fence, now + change.lifeMs);
  if (kind === 'changed' || kind === 'unchanged') memory.lowerFence(key, change.fence);
  if (kind === 'unknown' || kind === 'soften') memory.soften(key);
  if (kind === 'changed' || kind === 'forget') memory.forget(key);
}
