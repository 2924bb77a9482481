// The LRU index from keys to rows, with separate lists for records, newcomers and not-found answers, and the
// LRU clock.
import { LRUCache } from 'lru-cache';
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

/** Rows by key. */
type List = LRUCache<string, number>;

/** Maximum share of memory for not-found answers. */
const NOT_FOUND_SHARE = 1 / 8;

/**
 * Share of the records that newcomers may displace. Most names of a resolver's long tail are read once, and would
 * otherwise evict names that are read again (S3-FIFO, Yang et al., SOSP 2023).
 */
const NEWCOMER_SHARE = 1 / 10;

/**
 * V8 heap bytes for a key and its list slot, without the characters of the key: 100 bytes, doubled because
 * the list may just have grown.
 */
const OVERHEAD_BYTES = 200;

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
  readonly #options: LruIndexOptions;
  #found: List;
  #newcomers: List;
  #notFound: List;
  /** The row that changes its list, and so is not freed. */
  #moving: number | undefined;
  /** Keys by row. Unlike the lists, rows can be iterated while entries are added and removed. */
  readonly #keys: (string | undefined)[] = [];

  constructor(options: LruIndexOptions) {
    this.#options = options;
    this.#found = this.#newList('found');
    this.#newcomers = this.#newList('newcomers');
    this.#notFound = this.#newList('notFound');
  }

  /** Returns the row of a key. Counts as a use. */
  get(key: string): number | undefined {
    return this.#found.get(key) ?? this.#promoted(key) ?? this.#notFound.get(key);
  }

  peek(key: string): number | undefined {
    return this.#found.peek(key) ?? this.#newcomers.peek(key) ?? this.#notFound.peek(key);
  }

  #promoted(key: string): number | undefined {
    const at = this.#newcomers.peek(key);
    if (at === undefined) return undefined;
    this.#moving = at;
    this.#newcomers.delete(key);
    this.#moving = undefined;
    this.#keys[at] = key;
    this.#found.set(key, at);
    return at;
  }

  /** Adds a row to a list. Returns false, and frees the row, if the entry exceeds the list's size limit. */
  set(key: string, at: number, name: ListName): boolean {
    const home = name === 'newcomers' && this.#found.has(key) ? this.#found : this.#listOf(name);
    for (const other of this.#lists) if (other !== home) other.delete(key);
    home.set(key, at);
    const isKept = home.peek(key) === at;
    if (isKept) this.#keys[at] = key;
    else this.#options.rows.drop(at);
    if (name !== 'notFound') this.#evictRecords(home);
    else if (home.size > this.#options.bounds.notFound.maxEntries) home.pop();
    return isKept;
  }

  /**
   * Evicts newcomers while they exceed their share, otherwise the least recently used record, but not the record that
   * was just stored in `home`.
   */
  #evictRecords(home: List): void {
    const { maxEntries } = this.#options.bounds.found;
    for (;;) {
      const { entries, bytes } = this.used('found');
      if (entries <= maxEntries && bytes <= this.#found.maxSize) return;
      const isAboveShare =
        this.#newcomers.size > maxEntries * NEWCOMER_SHARE ||
        this.#newcomers.calculatedSize > this.#found.maxSize * NEWCOMER_SHARE;
      const canEvict = (list: List): boolean => list.size > (list === home ? 1 : 0);
      const isFromNewcomers = !canEvict(this.#found) || (isAboveShare && canEvict(this.#newcomers));
      (isFromNewcomers ? this.#newcomers : this.#found).pop();
    }
  }

  delete(key: string): void {
    for (const list of this.#lists) list.delete(key);
  }

  /** Replaces the lists, because emptying them would visit each entry. */
  clear(): void {
    this.#options.rows.clear();
    this.#keys.length = 0;
    this.#found = this.#newList('found');
    this.#newcomers = this.#newList('newcomers');
    this.#notFound = this.#newList('notFound');
  }

  /** Returns the key of a row; undefined for a free row. */
  keyAt(at: number): string | undefined {
    return this.#keys[at];
  }

  /** Exclusive upper bound of the row numbers. */
  get rowsEnd(): number {
    return this.#keys.length;
  }

  /** Whether the row fits into its list without an eviction. */
  hasRoom(key: string, at: number, name: ListName): boolean {
    const { found, notFound } = this.#options.bounds;
    const { maxEntries } = name === 'notFound' ? notFound : found;
    const { entries, bytes } = this.used(name);
    return bytes + this.bytesOf(key, at) <= this.#listOf(name).maxSize && entries < maxEntries;
  }

  usage(): MemoryUsage[] {
    return (['found', 'newcomers', 'notFound'] as const).map((store) => {
      const list = this.#listOf(store);
      return { store, entries: list.size, bytes: list.calculatedSize };
    });
  }

  /** Returns the entries and bytes that share a bound: those of all records, or of all not-found answers. */
  used(name: ListName): { entries: number; bytes: number } {
    const { size, calculatedSize } = this.#listOf(name);
    if (name === 'notFound') return { entries: size, bytes: calculatedSize };
    return {
      entries: this.#found.size + this.#newcomers.size,
      bytes: this.#found.calculatedSize + this.#newcomers.calculatedSize,
    };
  }

  bytesOf(key: string, at: number): number {
    return key.length + this.#options.rows.bytes(at) + OVERHEAD_BYTES;
  }

  get #lists(): readonly List[] {
    return [this.#found, this.#newcomers, this.#notFound];
  }

  #listOf(name: ListName): List {
    if (name === 'notFound') return this.#notFound;
    return name === 'newcomers' ? this.#newcomers : this.#found;
  }

  #newList(name: ListName): List {
    const { rows, bounds, onEvict } = this.#options;
    const share = name === 'notFound' ? NOT_FOUND_SHARE : 1 - NOT_FOUND_SHARE;
    return new LRUCache<string, number>({
      // The `max` option would preallocate memory for all entries.
      maxSize: Math.max(1, Math.floor(Math.min(bounds.maxBytes, MAX_BYTES) * share)),
      sizeCalculation: (at, key) => this.bytesOf(key, at),
      dispose: (at, _key, reason) => {
        if (at === this.#moving) return;
        this.#keys[at] = undefined;
        rows.drop(at);
        if (reason === 'evict') onEvict(name);
      },
    });
  }
}

/** Clock ticks per turnover of a list: the time in which it stores as many entries as it contains. */
const TICKS_PER_TURNOVER = 64;

/**
 * An approximate-LRU clock. An entry used again in the same tick keeps its list position, which saves a
 * lookup. Only stores advance the clock, because the order matters only for evictions, which stores cause.
 */
export class TouchClock {
  #now = 0;
  #storedThisTick = 0;

  get now(): number {
    return this.#now;
  }

  /** Advances the clock once per `entries` / 64 stores. `entries`: number of entries in the list. */
  countStore(entries: number): void {
    if (++this.#storedThisTick * TICKS_PER_TURNOVER < entries) return;
    this.#storedThisTick = 0;
    this.#now++;
  }
}
