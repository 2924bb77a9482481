// Applies coherence messages to local memory, and tracks the bans that apply to Redis entries.
import type { MemoryStore } from './memory/memory-store.js';
import { type Ban, Bans, type NumberedBan } from './coherence/bans.js';
import { type Deliver, type KeyChange, type KnownBans, isInvalidation } from './coherence/message.js';
import type { Deleted, StoreEvents } from './store.js';

const DELETES: ReadonlySet<string> = new Set<KeyChange['kind']>(['changed', 'forget']);

/** Maximum number of recorded bans: more than can arrive while the list is read from Redis. */
const MAX_ARRIVED = 10_000;

export function createMessageApplier(
  memory: MemoryStore,
  { invalidated, banned, purged, deleted, written }: StoreEvents,
) {
  const noteDeleted = (about: Deleted): ReturnType<Deliver> =>
    deleted.length === 0 ? undefined : Promise.all(deleted.map((note) => note(about)));
  let bans = new Bans();
  /** Bans received since the list was last read, by number. */
  const arrived = new Map<number, NumberedBan>();
  /** Floor of the ban list in Redis; undefined until the list has been read. */
  let floor: number | undefined;
  const ban = ({ prefix, isSoft }: Ban): void => {
    memory.ban({ prefix, isSoft });
    callAll(banned, prefix);
  };
  const noteBan = ({ prefix, isSoft }: Ban): ReturnType<Deliver> =>
    isSoft ? undefined : noteDeleted({ prefix });
  const distrust = (group?: number): void => {
    memory.distrust(group);
    callAll(banned, '');
  };
  const adoptBans = (known: KnownBans): void => {
    // At the start, the list has bans of any age.
    const isFirst = floor === undefined;
    // Bans up to the floor are no longer listed: this process may have missed some of them.
    if (known.floor !== floor) distrust();
    // Ban numbers of a different server run are not comparable with the known numbers.
    if (known.run !== bans.run) bans = bansAfter(known, arrived);
    arrived.clear();
    floor = known.floor;
    bans.raiseFloor(floor);
    for (const each of known.bans) {
      if (!bans.add(each)) continue;
      ban(each);
      if (!isFirst) callAll(purged, each.prefix);
      void noteBan(each);
    }
  };

  const applyBan = (message: NumberedBan): ReturnType<Deliver> => {
    // The list from Redis may already have contained this ban, but nothing has waited for its note.
    if (!bans.has(message)) ban(message);
    callAll(purged, message.prefix);
    recordArrival(arrived, message);
    bans.add(message);
    return noteBan(message);
  };
  const applyChange = (message: KeyChange): ReturnType<Deliver> => {
    memory.applyChange(message);
    const noted = DELETES.has(message.kind) ? noteDeleted({ key: message.key }) : undefined;
    if (isInvalidation(message)) callAll(invalidated, message.key);
    if (message.kind === 'changed') callAll(written, message.key);
    return noted;
  };
  const apply: Deliver = (message) => {
    if (message.kind === 'ban') return applyBan(message);
    if (message.kind === 'bans') adoptBans(message);
    else if (message.kind === 'distrust') distrust(message.group);
    else return applyChange(message);
    return undefined;
  };

  /** Returns the bans listed in Redis; undefined until they have been read. */
  const listedBans = (): Bans | undefined => (floor === undefined ? undefined : bans);
  return { apply, bans: listedBans };
}

function callAll<T>(functions: readonly ((about: T) => void)[], about: T): void {
  for (const call of functions) call(about);
}

/** Records a received ban. Only bans that arrive while the list is read matter, so the oldest may be dropped. */
function recordArrival(arrived: Map<number, NumberedBan>, message: NumberedBan): void {
  const [oldest] = arrived.keys();
  if (oldest !== undefined && arrived.size >= MAX_ARRIVED) arrived.delete(oldest);
  arrived.set(message.number, message);
}

/** Returns the received bans that continue the list without a gap. All others belong to the previous run. */
function bansAfter({ run, seq }: KnownBans, arrived: ReadonlyMap<number, NumberedBan>): Bans {
  const bans = new Bans(run);
  for (let ban = arrived.get(seq + 1); ban !== undefined; ban = arrived.get(ban.number + 1)) bans.add(ban);
  return bans;
}
