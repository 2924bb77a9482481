// The memory tier: the least recently used entries leave, found records and not-found answers apart.
import { randomUUID } from 'node:crypto';
import type { Entry } from './entry.js';
import { Fences } from './fences.js';
import { Forgotten } from './forgotten.js';
import { Eras, type Held, type Slot, type Slots, createSlots, sizeOf } from './slots.js';
import type { Fence, Looked, Store } from './store.js';
import { type Sweep, Sweeps, staleFrom } from './sweeps.js';

export interface MemoryBounds {
  maxBytes: number;
  found: { maxEntries: number };
  notFound: { maxEntries: number };
}

export interface MemoryOptions {
  bounds: MemoryBounds;
  /** How long a write may keep a key from being stored, when nobody says how it ended (ms). */
  fenceLifeMs: number;
  now: () => number;
  onEvict?: (store: MemoryUsage['store']) => void;
  fences?: Fences;
}

export interface MemoryUsage {
  store: 'found' | 'notFound';
  entries: number;
  bytes: number;
}

/** What memory says of a key when nobody but the operator asks. */
export interface Kept {
  entry: Entry;
  hits: number;
  bytes: number;
}

// A flood of unknown names may use this part of the memory, and no more.
const NOT_FOUND_SHARE = 1 / 8;

/** Design decision 5: a flood of unknown names cannot push out records, so each kind has its own list. */
export class MemoryStore implements Store<number> {
  #found: Slots;
  #notFound: Slots;
  readonly #forgotten = new Forgotten();
  /** Numbered by the moments of what was forgotten. */
  readonly #sweeps = new Sweeps();
  readonly #fences: Fences;
  readonly #eras = new Eras();
  readonly #bounds: MemoryBounds;
  readonly #fenceLifeMs: number;
  readonly #now: () => number;
  readonly #onEvict: MemoryOptions['onEvict'];

  constructor({ bounds, fenceLifeMs, now, onEvict, fences = new Fences() }: MemoryOptions) {
    this.#fences = fences;
    this.#bounds = bounds;
    this.#fenceLifeMs = fenceLifeMs;
    this.#now = now;
    this.#onEvict = onEvict;
    this.#found = this.#newList('found');
    this.#notFound = this.#newList('notFound');
  }

  get(key: string): Looked<number> {
    return { entry: this.peek(key), ticket: this.#forgotten.now() };
  }

  /** The entry alone; counts as a use. While the key is fenced it is not fresh. */
  peek(key: string): Entry | undefined {
    const slot = this.#slot(key);
    if (slot === undefined || !this.#outlivesSweeps(key, slot)) return undefined;
    slot.hits++;
    slot.era = this.#eras.now;
    return this.#fences.size === 0 ? slot.entry : this.#behindFence(key, slot);
  }

  /** Where the key is kept now; to be looked at with the same key. */
  hold(key: string): Held | undefined {
    return this.#slot(key);
  }

  /** The same as `peek`, without looking the key up as long as nothing has happened to it. */
  look(key: string, held: Held): Entry | undefined {
    const slot = held as Slot;
    const isAsItWas =
      !slot.isGone &&
      slot.era === this.#eras.now &&
      slot.since >= this.#sweeps.latest &&
      this.#fences.size === 0;
    if (!isAsItWas) return this.peek(key);
    slot.hits++;
    return slot.entry;
  }

  /** How often the entry was looked at since it was stored. */
  hits(key: string): number {
    return (this.#found.peek(key) ?? this.#notFound.peek(key))?.hits ?? 0;
  }

  /** For the operator: counts as no use. */
  inspect(key: string): Kept | undefined {
    const list = this.#found.has(key) ? this.#found : this.#notFound;
    const slot = list.peek(key);
    if (slot === undefined || !this.#outlivesSweeps(key, slot)) return undefined;
    const entry = this.#fences.size === 0 ? slot.entry : this.#behindFence(key, slot);
    return { entry, hits: slot.hits, bytes: sizeOf(slot, key) };
  }

  set(key: string, entry: Entry, ticket: number): boolean {
    this.#endFences(key);
    if (this.#forgotten.isSince(key, ticket) || this.#sweeps.isSince(key, ticket)) return false;
    if (this.#fences.isRaised(key)) return false;
    const [home, other] =
      entry.kind === 'found' ? [this.#found, this.#notFound] : [this.#notFound, this.#found];
    other.delete(key);
    this.#eras.stored(home.size);
    home.set(key, { entry, hits: 0, since: this.#forgotten.now(), isGone: false, era: this.#eras.now });
    const { maxEntries } = this.#bounds[home === this.#found ? 'found' : 'notFound'];
    if (home.size > maxEntries) home.pop();
    return home.has(key);
  }

  replace(key: string, entry: Entry, ticket: number): boolean {
    const isKept = this.set(key, entry, ticket);
    if (isKept) this.#forgotten.forget(key);
    return isKept;
  }

  forget(key: string): void {
    this.#forgotten.forget(key);
    this.#found.delete(key);
    this.#notFound.delete(key);
  }

  /** Nobody else has this memory. */
  heard(): void {
    return undefined;
  }

  fence(key: string): Fence {
    const writer = randomUUID();
    this.raise(key, writer, this.#now() + this.#fenceLifeMs);
    return {
      changed: () => {
        this.lower(key, writer);
        this.forget(key);
      },
      unchanged: () => {
        this.lower(key, writer);
      },
      unknown: () => {
        this.soften(key);
      },
    };
  }

  /** A write begins, here or elsewhere. What was loaded before it is not stored any more. */
  raise(key: string, writer: string, until: number): void {
    this.#endOldFences();
    this.#forgotten.forget(key);
    this.#fences.raise(key, writer, until);
  }

  /** A write is over. What was loaded while it went on is not stored. */
  lower(key: string, writer: string): void {
    this.#forgotten.forget(key);
    this.#fences.lower(key, writer);
  }

  /** What is kept of the key may only stand in from now on; what is on its way is not kept. */
  soften(key: string): void {
    this.#forgotten.forget(key);
    this.#makeStale(key);
  }

  sweep(sweep: Sweep): void {
    this.#sweeps.add({ ...sweep, number: this.#forgotten.next(), at: this.#now() });
    if (sweep.prefix !== '' || sweep.isSoft) return;
    // Emptying the lists would visit each entry.
    this.#found = this.#newList('found');
    this.#notFound = this.#newList('notFound');
  }

  /** Invalidations may have been missed: what is kept is stale from `now` on, what is on its way is not kept. */
  distrust(now: number): void {
    this.#sweeps.add({ prefix: '', isSoft: true, number: this.#forgotten.next(), at: now });
  }

  #newList(store: MemoryUsage['store']): Slots {
    const share = store === 'found' ? 1 - NOT_FOUND_SHARE : NOT_FOUND_SHARE;
    return createSlots({ maxBytes: this.#bounds.maxBytes * share, onEvict: () => this.#onEvict?.(store) });
  }

  /** Sweeps are applied to an entry when it is looked at; false when one of them took it. */
  #outlivesSweeps(key: string, slot: Slot): boolean {
    if (slot.since >= this.#sweeps.latest) return true;
    const left = this.#sweeps.apply(key, slot.entry, slot.since);
    slot.since = this.#forgotten.now();
    if (left !== undefined) slot.entry = left;
    else {
      this.#found.delete(key);
      this.#notFound.delete(key);
    }
    return left !== undefined;
  }

  #makeStale(key: string): void {
    const slot = this.#slot(key);
    if (slot) slot.entry = staleFrom(slot.entry, this.#now());
  }

  #slot(key: string): Slot | undefined {
    return this.#found.get(key) ?? this.#notFound.get(key);
  }

  #behindFence(key: string, slot: Slot): Entry {
    this.#endFences(key);
    return this.#fences.isRaised(key) ? staleFrom(slot.entry, this.#now()) : slot.entry;
  }

  /** Nobody knows how the write ended that a fence has outlived: what was kept before may only stand in. */
  #endFences(key: string): void {
    if (this.#fences.size > 0 && this.#fences.takeRunOut(key, this.#now())) this.#makeStale(key);
  }

  /** Nobody may ever ask again for what a writer left fenced: some of it is cleared with each new write. */
  #endOldFences(): void {
    for (let times = 0; times < 2; times++) {
      const key = this.#fences.firstRunOut(this.#now());
      if (key !== undefined) this.#endFences(key);
    }
  }

  usage(): MemoryUsage[] {
    return [
      { store: 'found', entries: this.#found.size, bytes: this.#found.calculatedSize },
      { store: 'notFound', entries: this.#notFound.size, bytes: this.#notFound.calculatedSize },
    ];
  }
}
