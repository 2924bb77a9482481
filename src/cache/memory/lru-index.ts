// The LRU index from keys to rows, with separate lists for records, newcomers and not-found answers, and the
// LRU clock.
import { LRUCache } from 'lru-cache';
import { hashOf } from '../coherence/groups.js';
import { MAX_BYTES } from './block-store.js';
import type { RowStore } from './row-store.js';

export interface MemoryBounds {
  maxBytes: number;
  found: { maxEntries: number };
  notFound: { maxEntries: number };
}

/** `newcomers`: records that have not been used since they were stored. */
export type ListName = 'found' | 'newcomers' | 'notFound';

export interface MemoryUsage {
  store: ListName;
  entries: number;
  bytes: number;
}

/**
 * A list's name for a key: the hash of the key, because a million keys as strings would take more memory than their
 * rows. The key itself if a different key of the list has the same hash.
 */
type Slot = number | string;

type List = LRUCache<Slot, number>;

/** `unserved`: records that no server has. They count as records, and are never evicted. */
type ListOfRows = ListName | 'unserved';

interface ListedRow {
  list: List;
  slot: Slot;
  at: number;
}

/** Maximum share of memory for not-found answers. */
const NOT_FOUND_SHARE = 1 / 8;

/**
 * Share of the records that newcomers may displace. Most names of a resolver's long tail are read once, and would
 * otherwise evict names that are read again (S3-FIFO, Yang et al., SOSP 2023).
 */
const NEWCOMER_SHARE = 1 / 10;

/** Ticks per turnover of a list: the time in which it stores as many entries as it contains. */
const TICKS_PER_TURNOVER = 64;

/** V8 heap bytes for a slot of a list: 100 bytes, and half as many again because the list may just have grown. */
const OVERHEAD_BYTES = 150;

interface LruIndexOptions {
  rows: RowStore;
  bounds: MemoryBounds;
  onEvict: (list: ListName) => void;
}

/**
 * Keeps records and not-found answers in separate lists, so that a flood of unknown names cannot evict
 * records. A record starts among the newcomers, and its first use moves it to the other records.
 */
export class LruIndex {
  #lists: Record<ListOfRows, List>;
  /** The row that changes its list, and so is not freed. */
  #moving: number | undefined;
  /**
   * The time of the approximate LRU. An entry used again in the same tick keeps its list position, which saves a
   * lookup. Only stores advance it, because the order matters only for evictions, which stores cause.
   */
  tick = 0;
  #storedThisTick = 0;

  constructor(private readonly options: LruIndexOptions) {
    this.#lists = this.#newLists();
  }

  /** Returns the row of a key. Counts as a use, the first of which moves a newcomer to the other records. */
  get(key: string): number | undefined {
    const place = this.#find(key);
    if (place === undefined) return undefined;
    const { list, slot, at } = place;
    if (list === this.#lists.newcomers) this.#promote(key, place);
    else list.get(slot);
    return at;
  }

  peek(key: string): number | undefined {
    return this.#find(key)?.at;
  }

  #find(key: string, hash = hashOf(key) | 0): ListedRow | undefined {
    const { found, newcomers, unserved, notFound } = this.#lists;
    for (const list of [found, newcomers, unserved, notFound]) {
      const at = list.peek(hash);
      if (at !== undefined && this.options.rows.hasKey(at, key)) return { list, slot: hash, at };
      const own = list.peek(key);
      if (own !== undefined) return { list, slot: key, at: own };
    }
    return undefined;
  }

  #promote(key: string, place: ListedRow): void {
    const { found } = this.#lists;
    this.#moving = place.at;
    const slot = slotIn(found, key, hashOf(key) | 0, place);
    this.#moving = undefined;
    found.set(slot, place.at);
  }

  /**
   * Adds a row to a list; that of a known record without a server stays in its own. Returns false, and frees the row, if
   * there is no room.
   */
  set(key: string, at: number, name: ListOfRows): boolean {
    const hash = hashOf(key) | 0;
    const known = this.#find(key, hash);
    const { found, unserved, notFound } = this.#lists;
    const isKept = known?.list === unserved || (name === 'newcomers' && known?.list === found);
    const home = isKept ? known.list : this.#lists[name];
    const slot = slotIn(home, key, hash, known);
    home.set(slot, at);
    if (home.peek(slot) !== at) this.options.rows.drop(at);
    if (home !== notFound) this.#evictRecords(home);
    else if (home.size > this.options.bounds.notFound.maxEntries) home.pop();
    return home.peek(slot) === at;
  }

  /** Advances the tick once per entries / 64 stores, by the entries of the list. */
  countStore(name: ListName): void {
    if (++this.#storedThisTick * TICKS_PER_TURNOVER < this.#used(name).entries) return;
    this.#storedThisTick = 0;
    this.tick = (this.tick + 1) >>> 0;
  }

  /**
   * Evicts newcomers while they exceed their share, otherwise the least recently used record, but not the record that
   * was just stored in `home`, unless those without a server leave no room for it.
   */
  #evictRecords(home: List): void {
    const { maxEntries } = this.options.bounds.found;
    const { found, newcomers } = this.#lists;
    for (;;) {
      const { entries, bytes } = this.#used('found');
      if (entries <= maxEntries && bytes <= found.maxSize) return;
      const isAboveShare =
        newcomers.size > maxEntries * NEWCOMER_SHARE ||
        newcomers.calculatedSize > found.maxSize * NEWCOMER_SHARE;
      const hasOthers = (list: List): boolean => list.size > (list === home ? 1 : 0);
      const isFromFound = hasOthers(found) && !(isAboveShare && hasOthers(newcomers));
      const evicted = isFromFound ? found.pop() : (newcomers.pop() ?? found.pop());
      if (evicted === undefined) return;
    }
  }

  delete(key: string): void {
    const place = this.#find(key);
    place?.list.delete(place.slot);
  }

  /** Replaces the lists, because emptying them would visit each entry. */
  clear(): void {
    this.options.rows.clear();
    this.#lists = this.#newLists();
  }

  /** Whether the row fits into its list without an eviction. */
  hasRoom(at: number, name: ListOfRows): boolean {
    const { found, notFound } = this.options.bounds;
    const { maxEntries } = name === 'notFound' ? notFound : found;
    const { entries, bytes } = this.#used(name);
    return bytes + this.bytesOf(at) <= this.#lists[name].maxSize && entries < maxEntries;
  }

  usage(): MemoryUsage[] {
    const { unserved } = this.#lists;
    return (['found', 'newcomers', 'notFound'] as const).map((store) => {
      const { size, calculatedSize } = this.#lists[store];
      if (store !== 'found') return { store, entries: size, bytes: calculatedSize };
      return { store, entries: size + unserved.size, bytes: calculatedSize + unserved.calculatedSize };
    });
  }

  /** Returns the entries and bytes that share a bound: those of all records, or of all not-found answers. */
  #used(name: ListOfRows): { entries: number; bytes: number } {
    const { found, newcomers, unserved, notFound } = this.#lists;
    if (name === 'notFound') return { entries: notFound.size, bytes: notFound.calculatedSize };
    return {
      entries: found.size + newcomers.size + unserved.size,
      bytes: found.calculatedSize + newcomers.calculatedSize + unserved.calculatedSize,
    };
  }

  bytesOf(at: number): number {
    return this.options.rows.bytes(at) + OVERHEAD_BYTES;
  }

  #newLists(): Record<ListOfRows, List> {
    return {
      found: this.#newList('found'),
      newcomers: this.#newList('newcomers'),
      unserved: this.#newList('unserved'),
      notFound: this.#newList('notFound'),
    };
  }

  #newList(name: ListOfRows): List {
    const { rows, bounds, onEvict } = this.options;
    const share = name === 'notFound' ? NOT_FOUND_SHARE : 1 - NOT_FOUND_SHARE;
    return new LRUCache<Slot, number>({
      // The `max` option would preallocate memory for all entries.
      maxSize: Math.max(1, Math.floor(Math.min(bounds.maxBytes, MAX_BYTES) * share)),
      sizeCalculation: (at) => this.bytesOf(at),
      dispose: (at, _slot, reason) => {
        if (at === this.#moving) return;
        rows.drop(at);
        if (reason === 'evict' && name !== 'unserved') onEvict(name);
      },
    });
  }
}

/** Returns the slot of a key, after its removal from a different list. */
function slotIn(list: List, key: string, hash: number, known: ListedRow | undefined): Slot {
  if (known?.list === list) return known.slot;
  known?.list.delete(known.slot);
  return list.has(hash) ? key : hash;
}
