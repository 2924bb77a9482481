// The LRU index: keys to rows, one bounded list for records and one for not-found answers, and the approximate-LRU clock.
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

/** Maximum share of the memory for not-found answers. */
const NOT_FOUND_SHARE = 1 / 8;

/**
 * V8 heap for a key and its place in the list, without the characters of the key: 100 bytes, and as much again for a list
 * that has just grown.
 */
const OVERHEAD_BYTES = 200;

interface LruIndexOptions {
  rows: RowStore;
  bounds: MemoryBounds;
  onEvict: (list: ListName) => void;
}

/** Each kind has its own list, so that a flood of unknown names cannot evict records. */
export class LruIndex {
  readonly #options: LruIndexOptions;
  #found: List;
  #notFound: List;
  /** The key of each row. Rows can be iterated while entries come and go; the lists cannot. */
  readonly #keys: (string | undefined)[] = [];

  constructor(options: LruIndexOptions) {
    this.#options = options;
    this.#found = this.#newList('found');
    this.#notFound = this.#newList('notFound');
  }

  /** Counts as a use. */
  get(key: string): number | undefined {
    return this.#found.get(key) ?? this.#notFound.get(key);
  }

  peek(key: string): number | undefined {
    return this.#found.peek(key) ?? this.#notFound.peek(key);
  }

  /** False when the entry is larger than its whole list; its row is freed then. */
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

  /** Replaces the lists: emptying them would visit each entry. */
  clear(): void {
    this.#options.rows.clear();
    this.#keys.length = 0;
    this.#found = this.#newList('found');
    this.#notFound = this.#newList('notFound');
  }

  /** Undefined for a free row. */
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
      // `max` would preallocate for all entries.
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

/** Ticks in the time in which as many entries are stored as the list holds. */
const TICKS_PER_TURNOVER = 64;

/**
 * An approximate-LRU clock. An entry that is used again in the same tick keeps its place in the list, which saves a look-up.
 * It ticks with stores, because only a store evicts, and only then does the order matter.
 */
export class TouchClock {
  #now = 0;
  #storedThisTick = 0;

  get now(): number {
    return this.#now;
  }

  /** Advances the clock once per `entries` / 64 stores. `entries`: number of entries in the list of the store. */
  countStore(entries: number): void {
    if (++this.#storedThisTick * TICKS_PER_TURNOVER < entries) return;
    this.#storedThisTick = 0;
    this.#now++;
  }
}
