// Which entries memory keeps: of each kind those that were used last, as many as there is room for.
import { LRUCache } from 'lru-cache';
import { MOST_BYTES } from './block-store.js';
import type { Slots } from './row-store.js';

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

/** Places in the slots by key. */
type List = LRUCache<string, number>;

// A flood of unknown names may use this part of the memory, and no more.
const NOT_FOUND_SHARE = 1 / 8;

/**
 * What key and list take of the V8 heap beside the characters of the key: 100 bytes live, and the room of a list that
 * has just grown.
 */
const OVERHEAD_BYTES = 200;

export interface ListsOptions {
  slots: Slots;
  bounds: MemoryBounds;
  onEvict: (list: ListName) => void;
}

/** Design decision 5: a flood of unknown names cannot push out records, so each kind has its own list. */
export class Lists {
  readonly #options: ListsOptions;
  #found: List;
  #notFound: List;

  constructor(options: ListsOptions) {
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

  /** False when the entry is larger than all that its list may take; the place is given up then. */
  set(key: string, at: number, name: ListName): boolean {
    const [home, other] = name === 'found' ? [this.#found, this.#notFound] : [this.#notFound, this.#found];
    other.delete(key);
    home.set(key, at);
    const isKept = home.peek(key) === at;
    if (!isKept) this.#options.slots.drop(at);
    if (home.size > this.#options.bounds[name].maxEntries) home.pop();
    return isKept;
  }

  delete(key: string): void {
    this.#found.delete(key);
    this.#notFound.delete(key);
  }

  /** At once: to empty the lists would be to visit each entry. */
  clear(): void {
    this.#options.slots.clear();
    this.#found = this.#newList('found');
    this.#notFound = this.#newList('notFound');
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
    return key.length + this.#options.slots.bytes(at) + OVERHEAD_BYTES;
  }

  #newList(name: ListName): List {
    const { slots, bounds, onEvict } = this.#options;
    const share = name === 'found' ? 1 - NOT_FOUND_SHARE : NOT_FOUND_SHARE;
    return new LRUCache<string, number>({
      // `max` would take room for all entries at once: 60 MB for a million, before the first is there.
      maxSize: Math.max(1, Math.floor(Math.min(bounds.maxBytes, MOST_BYTES) * share)),
      sizeCalculation: (at, key) => this.bytesOf(key, at),
      dispose: (at, _key, reason) => {
        slots.drop(at);
        if (reason === 'evict') onEvict(name);
      },
    });
  }
}

/**
 * What is used again in the same era keeps its place in the list, and so need not be looked up there. A new
 * era begins when so many parts of the entries have been stored: where nothing is stored nothing is evicted,
 * and the order matters to nobody.
 */
const ERAS_PER_TURNOVER = 64;

export class Eras {
  #now = 0;
  /** In this era. */
  #stored = 0;

  get now(): number {
    return this.#now;
  }

  /** One more is stored beside so many. */
  stored(entries: number): void {
    if (++this.#stored * ERAS_PER_TURNOVER < entries) return;
    this.#stored = 0;
    this.#now++;
  }
}
