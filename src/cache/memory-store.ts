// The memory tier: the least recently used entries leave, found records and not-found answers apart.
import { randomUUID } from 'node:crypto';
import { type Entry, isSame } from './entry.js';
import { Eras } from './eras.js';
import { Fences } from './fences.js';
import { Forgotten } from './forgotten.js';
import { Lists, type ListName, type MemoryBounds, type MemoryUsage } from './lists.js';
import { type Held, Slots } from './slots.js';
import type { Fence, Looked, Store } from './store.js';
import { type Sweep, Sweeps, staleFrom } from './sweeps.js';

export interface MemoryOptions {
  bounds: MemoryBounds;
  /** How long a write may keep a key from being stored, when nobody says how it ended (ms). */
  fenceLifeMs: number;
  now: () => number;
  onEvict?: (store: ListName) => void;
  fences?: Fences;
}

/** What memory says of a key when nobody but the operator asks. */
export interface Kept {
  entry: Entry;
  hits: number;
  bytes: number;
}

export class MemoryStore implements Store<number> {
  readonly #slots = new Slots();
  readonly #lists: Lists;
  readonly #forgotten = new Forgotten();
  /** Numbered by the moments of what was forgotten. */
  readonly #sweeps = new Sweeps();
  readonly #fences: Fences;
  readonly #eras = new Eras();
  readonly #fenceLifeMs: number;
  readonly #now: () => number;

  constructor({ bounds, fenceLifeMs, now, onEvict = () => undefined, fences = new Fences() }: MemoryOptions) {
    this.#fences = fences;
    this.#fenceLifeMs = fenceLifeMs;
    this.#now = now;
    this.#lists = new Lists({ slots: this.#slots, bounds, onEvict });
  }

  get(key: string): Looked<number> {
    return { entry: this.peek(key), ticket: this.#forgotten.now() };
  }

  /** The entry alone; counts as a use. A write in flight takes nothing away: until it is acknowledged the entry is right. */
  peek(key: string): Entry | undefined {
    const at = this.#use(key);
    return at === undefined ? undefined : this.#slots.entry(at);
  }

  /** Where the entry is kept now, if it is what is kept; to be looked at with the same key. */
  hold(key: string, entry: Entry): Held | undefined {
    const at = this.#lists.get(key);
    return at !== undefined && isSame(this.#slots.entry(at), entry) ? this.#slots.hold(at) : undefined;
  }

  /** Whether `peek` would give the entry that is held. Also a use; as long as nothing has happened it is a short one. */
  look(key: string, held: Held): boolean {
    const era = this.#eras.now;
    const sweep = this.#sweeps.latest;
    this.#endFences(key);
    if (this.#slots.useAsItWas(held, { era, sweep })) return true;
    const at = this.#use(key);
    return at !== undefined && this.#slots.hold(at).stamp === held.stamp;
  }

  /** How often the entry was looked at since it was stored. */
  hits(key: string): number {
    const at = this.#lists.peek(key);
    return at === undefined ? 0 : this.#slots.hits(at);
  }

  /** For the operator: counts as no use. */
  inspect(key: string): Kept | undefined {
    this.#endFences(key);
    const at = this.#lists.peek(key);
    if (at === undefined || !this.#outlivesSweeps(key, at)) return undefined;
    const entry = this.#slots.entry(at);
    return { entry, hits: this.#slots.hits(at), bytes: this.#lists.bytesOf(key, at) };
  }

  /** Whether nothing has invalidated the key since the ticket was given. */
  isCurrent(key: string, ticket: number): boolean {
    return !this.#forgotten.isSince(key, ticket) && !this.#sweeps.isSince(key, ticket);
  }

  accepts(key: string, ticket: number): boolean {
    this.#endFences(key);
    return this.isCurrent(key, ticket) && !this.#fences.isRaised(key);
  }

  set(key: string, entry: Entry, ticket: number): boolean {
    if (!this.accepts(key, ticket)) return false;
    const list = entry.kind === 'found' ? 'found' : 'notFound';
    this.#eras.stored(this.#lists.size(list));
    const at = this.#slots.add(entry, { since: this.#forgotten.now(), era: this.#eras.now });
    return this.#lists.set(key, at, list);
  }

  replace(key: string, entry: Entry, ticket: number): boolean {
    const isKept = this.set(key, entry, ticket);
    if (isKept) this.#forgotten.forget(key);
    return isKept;
  }

  forget(key: string): void {
    this.#forgotten.forget(key);
    this.#lists.delete(key);
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
      // The fence stays until it expires.
      unknown: () => {
        this.soften(key);
      },
    };
  }

  /** A write begins, here or elsewhere. No load that began before it is stored any more. */
  raise(key: string, writer: string, until: number): void {
    this.#endOldFences();
    this.#forgotten.forget(key);
    this.#fences.raise(key, writer, until);
  }

  /** A write is over. A load that began meanwhile may be stored if the write changed nothing. */
  lower(key: string, writer: string): void {
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
    this.#lists.clear();
  }

  /** Invalidations may have been missed: what is kept is stale from `now` on, what is on its way is not kept. */
  distrust(now: number): void {
    this.#sweeps.add({ prefix: '', isSoft: true, number: this.#forgotten.next(), at: now });
  }

  #use(key: string): number | undefined {
    this.#endFences(key);
    const at = this.#lists.get(key);
    if (at === undefined || !this.#outlivesSweeps(key, at)) return undefined;
    this.#slots.used(at, this.#eras.now);
    return at;
  }

  /** Sweeps are applied to an entry when it is looked at; false when one of them took it. */
  #outlivesSweeps(key: string, at: number): boolean {
    const since = this.#slots.since(at);
    if (since >= this.#sweeps.latest) return true;
    const times = this.#slots.times(at);
    const left = this.#sweeps.apply(key, times, since);
    if (left === undefined) {
      this.#lists.delete(key);
      return false;
    }
    this.#slots.setSince(at, this.#forgotten.now());
    if (left !== times) this.#slots.setStaleAt(at, left.staleAt);
    return true;
  }

  #makeStale(key: string): void {
    const at = this.#lists.get(key);
    if (at !== undefined) this.#slots.setStaleAt(at, staleFrom(this.#slots.times(at), this.#now()).staleAt);
  }

  /** A fence that expires was left by a writer that died: its write may have changed the record, so the entry is stale. */
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
    return this.#lists.usage();
  }
}
