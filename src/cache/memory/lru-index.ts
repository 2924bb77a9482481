// The LRU index from keys to rows, with separate lists for records and not-found answers, and the LRU clock.
import { LRUCache } from 'lru-cache';
import { MAX_BYTES } from './block-store.js';
import type { RowStore } from './row-store.js';

export interface MemoryBounds {
  maxBytes: number;
  found: { maxEntries: number };
  notFound: { maxEntries: number };
}

export type ListName = 'found' | 'notFound';

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
 * records.
 */
export class LruIndex {
  readonly #options: LruIndexOptions;
  #found: List;
  #notFound: List;
  /** Keys by row. Unlike the lists, rows can be iterated while entries are added and removed. */
  readonly #keys: (string | undefined)[] = [];

  constructor(options: LruIndexOptions) {
    this.#options = options;
    this.#found = this.#newList('found');
    this.#notFound = this.#newList('notFound');
  }

  /** Returns the row of a key. Counts as a use. */
  get(key: string): number | undefined {
    return this.#found.get(key) ?? this.#notFound.get(key);
  }

  peek(key: string): number | undefined {
    return this.#found.peek(key) ?? this.#notFound.peek(key);
  }

  /** Adds a row to a list. Returns false, and frees the row, if the entry exceeds the list's size limit. */
  set(key: string, at: number, name: ListName): boolean {
    const [home, other] = name === 'found' ? [this.#found, this.#notFound] : [this.#notFound, this.#found];
    other.delete(key);
    home.set(key, at);
    const isKept = home.peek(key) === at;
    if (isKept) this.#keys[at] = key;
    else this.#options.rows.drop(at);
    if (home.size > this.#options.bounds[name].maxEntries) home.pop();
    return isKept;
  }

  delete(key: string): void {
    this.#found.delete(key);
    this.#notFound.delete(key);
  }

  /** Replaces the lists, because emptying them would visit each entry. */
  clear(): void {
    this.#options.rows.clear();
    this.#keys.length = 0;
    this.#found = this.#newList('found');
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
    const list = name === 'found' ? this.#found : this.#notFound;
    const isWithinBytes = list.calculatedSize + this.bytesOf(key, at) <= list.maxSize;
    return isWithinBytes && list.size < this.#options.bounds[name].maxEntries;
  }

  size(name: ListName): number {
    return name === 'found' ? this.#found.size : this.#notFound.size;
  }

  usage(): MemoryUsage[] {
    return [
      { store: 'found', entries: this.#found.size, bytes: this.#found.calculatedSize },
      { store: 'notFound', entries: this.#notFound.size, bytes: this.#notFound.calculatedSize },
    ];
  }

  bytesOf(key: string, at: number): number {
    return key.length + this.#options.rows.bytes(at) + OVERHEAD_BYTES;
  }

  #newList(name: ListName): List {
    const { rows, bounds, onEvict } = this.#options;
    const share = name === 'found' ? 1 - NOT_FOUND_SHARE : NOT_FOUND_SHARE;
    return new LRUCache<string, number>({
      // The `max` option would preallocate memory for all entries.
      maxSize: Math.max(1, Math.floor(Math.min(bounds.maxBytes, MAX_BYTES) * share)),
      sizeCalculation: (at, key) => this.bytesOf(key, at),
      dispose: (at, _key, reason) => {
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
