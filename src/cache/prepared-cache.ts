// Prepared responses of all interfaces. Each is valid only while memory holds the entry it was rendered from.
import type { Config } from '../config/schema.js';
import type { HandleRef } from '../handle/handle.js';
import type { Entry, Times } from './entry.js';
import type { MemoryStore } from './memory/memory-store.js';
import { isFresh, isNearEnd } from './policy.js';
import type { EntryPin } from './store.js';

interface WatchParts {
  memory: Pick<MemoryStore, 'pin' | 'touchIfCurrent'>;
  /** Returns the time (ms since the epoch) before which entries may have missed an invalidation. */
  trustedSince: () => number;
}

interface PreparedCacheParts extends WatchParts {
  /** Called for each response that is sent again, with the key of its entry. */
  onRepeat: readonly ((key: string) => void)[];
}

/** A pinned entry in memory, and its times. */
interface WatchedEntry extends EntryPin, Times {
  key: string;
  /** When the resolver last handled a read near the end of the TTL, and may have started a refresh (ms). */
  refreshOfferedAt: number;
}

/** Time after which another read goes to the resolver, because a refresh may have failed (ms). */
const OFFER_EVERY_MS = 5000;

/** Pins an entry; undefined if memory no longer holds it. */
export function watchEntry(key: string, entry: Entry, { memory }: WatchParts): WatchedEntry | undefined {
  const pin = memory.pin(key, entry);
  if (pin === undefined) return undefined;
  const { requestedAt, staleAt } = entry;
  return { key, ...pin, requestedAt, staleAt, refreshOfferedAt: -Infinity };
}

/** Returns whether the resolver would serve the same entry now. Counts as a use of the entry. */
export function isCurrent(watched: WatchedEntry, now: number, { memory, trustedSince }: WatchParts): boolean {
  // An invalidated, replaced or distrusted entry no longer matches its pin.
  if (!memory.touchIfCurrent(watched.key, watched) || !isFresh(watched, now, trustedSince())) return false;
  if (!isNearEnd(watched, now) || now < watched.refreshOfferedAt + OFFER_EVERY_MS) return true;
  // Near the end of the TTL a read goes to the resolver, which may refresh the entry ahead.
  watched.refreshOfferedAt = now;
  return false;
}

/** Entries that a response depends on in addition to its own; shared by all responses that depend on them. */
export interface Dependency {
  isCurrent: (now: number) => boolean;
}

export interface Prepared extends WatchedEntry {
  /** Additional entries that must be unchanged; undefined if there are none. */
  dependency: Dependency | undefined;
  /** Total length of the response texts. */
  bytes: number;
}

/** Key of a prepared response. Names of different interfaces never collide, so a name determines the type. */
export type PreparedName<T extends Prepared> = string & { readonly __answer: T };

/** The requested handle, and the entry that answered it. */
export interface AnsweredEntry {
  handle: HandleRef;
  entry: Entry;
  dependency?: Dependency | undefined;
}

/** Estimated overhead of a prepared response: the object, its headers and strings, and the map entry. */
const OVERHEAD_BYTES = 700;

/**
 * A cache with two generations: a response that stays unused while the young generation fills half of the bounds is
 * dropped with the old generation. A hit in the young generation costs one Map lookup, without LRU list updates.
 */
export class PreparedCache {
  #young = new Map<string, Prepared>();
  #old = new Map<string, Prepared>();
  #youngBytes = 0;

  constructor(
    private readonly bounds: Config['http']['responseCache'],
    private readonly parts: PreparedCacheParts,
  ) {}

  /** Returns the prepared response of a name, which `use` must allow. */
  find<T extends Prepared>(name: PreparedName<T>): T | undefined {
    const young = this.#young.get(name);
    if (young !== undefined) return young as T;
    const old = this.#old.get(name);
    if (old !== undefined) this.#put(name, old);
    return old as T | undefined;
  }

  /** Returns whether the resolver would serve the same entry now. Counts as a use of the entry. */
  use(prepared: Prepared, now: number): boolean {
    if (!isCurrent(prepared, now, this.parts)) return false;
    if (prepared.dependency !== undefined && !prepared.dependency.isCurrent(now)) return false;
    for (const onRepeat of this.parts.onRepeat) onRepeat(prepared.key);
    return true;
  }

  /**
   * Prepares a response from an entry; undefined if memory no longer holds the entry. `render` receives the
   * response already prepared from the same entry, and may extend it.
   */
  prepare<T extends Prepared>(
    name: PreparedName<T>,
    { handle, entry, dependency }: AnsweredEntry,
    render: (start: Prepared, known: T | undefined) => T,
  ): T | undefined {
    const watched = watchEntry(handle.key, entry, this.parts);
    if (watched === undefined) return undefined;
    const found = this.find(name);
    const known = found?.stamp === watched.stamp ? found : undefined;
    const prepared = render({ ...watched, dependency, bytes: 0 }, known);
    prepared.dependency = dependency;
    this.#put(name, prepared);
    return prepared;
  }

  #put(name: string, prepared: Prepared): void {
    const { maxEntries, maxBytes } = this.bounds;
    if (maxEntries === 0) return;
    this.#old.delete(name);
    this.#young.set(name, prepared);
    this.#youngBytes += name.length + prepared.bytes + OVERHEAD_BYTES;
    if (this.#young.size * 2 <= maxEntries && this.#youngBytes * 2 <= maxBytes) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}
