// Answers prepared from entries in memory: valid as long as memory holds the entry they were made from.
import type { Config } from '../config/schema.js';
import type { Entry, Times } from './entry.js';
import { isFresh, isNearEnd } from './policy.js';
import type { EntryPin, PinnedEntries } from './store.js';

/** The other entries that an answer depends on; shared by all answers with the same dependencies. */
export interface Beside {
  isCurrent: (now: number) => boolean;
}

/** The fields that prepared answers of all interfaces have in common. */
export interface Prepared extends EntryPin, Times {
  /** Key of its entry. */
  key: string;
  /** The resolver has handled a read near the end of the TTL, and may have started a refresh. */
  isRefreshOffered: boolean;
  /** Other entries that must be unchanged; undefined if it depends on none. */
  beside: Beside | undefined;
}

/** Dependencies that all caches of prepared answers share. */
export interface PreparedDeps {
  budget: PreparedBudget;
  memory: PinnedEntries;
  keyOf: (handle: string) => string;
  /** Entries from before this moment (ms) may have missed an invalidation. */
  trustedSince: () => number;
}

/** Creates the shared budget from `http.hotPath`. */
export function createPreparing(
  { enabled, maxEntries, maxBytes }: Config['http']['hotPath'],
  parts: Omit<PreparedDeps, 'budget'>,
): PreparedDeps {
  return { ...parts, budget: new PreparedBudget({ maxEntries: enabled ? maxEntries : 0, maxBytes }) };
}

interface Aging {
  /** Drops the old generation; the young one becomes old. */
  age: () => void;
  readonly youngEntries: number;
}

/** Bounds several caches together: when their young generations reach half of a bound, all of them age. */
export class PreparedBudget {
  readonly #bounds: { maxEntries: number; maxBytes: number };
  readonly #caches = new Map<string, Aging>();
  #youngBytes = 0;

  /** `maxEntries` 0 turns the caches off. */
  constructor(bounds: { maxEntries: number; maxBytes: number }) {
    this.#bounds = bounds;
  }

  get isOn(): boolean {
    return this.#bounds.maxEntries > 0;
  }

  /** A later cache of the same name replaces the earlier one. */
  join(name: string, cache: Aging): void {
    this.#caches.set(name, cache);
  }

  add(bytes: number): void {
    const { maxEntries, maxBytes } = this.#bounds;
    const caches = [...this.#caches.values()];
    const youngEntries = caches.reduce((sum, cache) => sum + cache.youngEntries, 0);
    this.#youngBytes += bytes;
    if (youngEntries * 2 <= maxEntries && this.#youngBytes * 2 <= maxBytes) return;
    for (const cache of caches) cache.age();
    this.#youngBytes = 0;
  }
}

/**
 * Two generations: an answer that is not used while the young generation fills up is dropped with the old one. A
 * look-up is one Map look-up, without the list of an LRU.
 */
export class PreparedCache<T extends Prepared> {
  readonly #deps: PreparedDeps;
  readonly #sizeOf: (name: string, prepared: T) => number;
  #young = new Map<string, T>();
  #old = new Map<string, T>();

  /** `interfaces`: name of the interfaces whose answers it holds. */
  constructor(interfaces: string, deps: PreparedDeps, sizeOf: (name: string, prepared: T) => number) {
    this.#deps = deps;
    this.#sizeOf = sizeOf;
    deps.budget.join(interfaces, this);
  }

  get youngEntries(): number {
    return this.#young.size;
  }

  age(): void {
    this.#old = this.#young;
    this.#young = new Map();
  }

  /** The prepared answer, if the resolver would answer with the same entry now. Counts as a use of the entry. */
  current(name: string, now: number): T | undefined {
    const prepared = this.get(name);
    if (prepared === undefined) return undefined;
    const { memory, trustedSince } = this.#deps;
    // False when the entry was invalidated, replaced or distrusted.
    if (!memory.touchIfCurrent(prepared.key, prepared)) {
      this.#young.delete(name);
      this.#old.delete(name);
      return undefined;
    }
    if (!isFresh(prepared, now, trustedSince())) return undefined;
    if (prepared.beside !== undefined && !prepared.beside.isCurrent(now)) return undefined;
    if (!isNearEnd(prepared, now) || prepared.isRefreshOffered) return prepared;
    prepared.isRefreshOffered = true;
    return undefined;
  }

  /** Returns the prepared answer even if its entry is not current. */
  get(name: string): T | undefined {
    const prepared = this.#young.get(name);
    if (prepared !== undefined) return prepared;
    const aged = this.#old.get(name);
    if (aged !== undefined) this.set(name, aged);
    return aged;
  }

  /** Returns the common fields of an answer from this entry; undefined when memory no longer holds the entry. */
  begin(handle: string, entry: Entry): Prepared | undefined {
    const key = this.#deps.keyOf(handle);
    const pin = this.#deps.memory.pin(key, entry);
    if (pin === undefined) return undefined;
    const { requestedAt, staleAt } = entry;
    return { key, ...pin, requestedAt, staleAt, isRefreshOffered: false, beside: undefined };
  }

  set(name: string, prepared: T): void {
    const { budget } = this.#deps;
    if (!budget.isOn) return;
    this.#old.delete(name);
    this.#young.set(name, prepared);
    budget.add(this.#sizeOf(name, prepared));
  }
}
