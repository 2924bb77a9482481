// The memory tier: the least recently used entries leave, found records and not-found answers apart.
import { type Ban, Bans } from '../coherence/bans.js';
import { Fences } from '../coherence/fences.js';
import { groupOf } from '../coherence/groups.js';
import { InvalidationLog } from './invalidation-log.js';
import { type Entry, asStale, isSame } from '../entry.js';
import { Eras, Lists, type ListName, type MemoryBounds, type MemoryUsage } from './lru-index.js';
import { type Held, Slots } from './row-store.js';
import type { Looked } from '../store.js';

export interface MemoryOptions {
  bounds: MemoryBounds;
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

export class MemoryStore {
  readonly #slots = new Slots();
  readonly #lists: Lists;
  readonly #log = new InvalidationLog();
  /** Numbered by the moments of the invalidation log. */
  readonly #bans = new Bans();
  readonly #fences: Fences;
  readonly #eras = new Eras();
  /** By group: entries and loads from before this moment may have missed an invalidation. */
  readonly #distrusted = new Map<number, number>();
  /** The newest moment of a ban or a distrusted group: what is newer need not be checked. */
  #checkedFrom = 0;
  readonly #now: () => number;

  constructor({ bounds, now, onEvict = () => undefined, fences = new Fences() }: MemoryOptions) {
    this.#fences = fences;
    this.#now = now;
    this.#lists = new Lists({ slots: this.#slots, bounds, onEvict });
  }

  get(key: string): Looked<number> {
    return { entry: this.peek(key), ticket: this.#log.now() };
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
    this.#endFences(key);
    if (this.#slots.useAsItWas(held, { era, checkedFrom: this.#checkedFrom })) return true;
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
    if (at === undefined || !this.#isLeft(key, at)) return undefined;
    const entry = this.#slots.entry(at);
    return { entry, hits: this.#slots.hits(at), bytes: this.#lists.bytesOf(key, at) };
  }

  /** Whether nothing has invalidated the key since the ticket was given. */
  isCurrent(key: string, ticket: number): boolean {
    if (this.#log.isSince(key, ticket)) return false;
    return (
      ticket >= this.#checkedFrom || !(this.#bans.isSince(key, ticket) || this.#isDistrusted(key, ticket))
    );
  }

  accepts(key: string, ticket: number): boolean {
    this.#endFences(key);
    return this.isCurrent(key, ticket) && !this.#fences.isRaised(key);
  }

  set(key: string, entry: Entry, ticket: number): boolean {
    if (!this.accepts(key, ticket)) return false;
    const list = entry.kind === 'found' ? 'found' : 'notFound';
    this.#eras.stored(this.#lists.size(list));
    const at = this.#slots.add(entry, { since: this.#log.now(), era: this.#eras.now });
    return this.#lists.set(key, at, list);
  }

  /** As `set`, for an authoritative answer: every load in flight is older. */
  replace(key: string, entry: Entry, ticket: number): boolean {
    const isKept = this.set(key, entry, ticket);
    if (isKept) this.#log.add(key);
    return isKept;
  }

  /** Drops the entry and makes every ticket given out for the key so far bad. */
  forget(key: string): void {
    this.#log.add(key);
    this.#lists.delete(key);
  }

  /** A write begins, here or elsewhere. No load that began before it is stored any more. */
  raise(key: string, writer: string, until: number): void {
    this.#endOldFences();
    this.#log.add(key);
    this.#fences.raise(key, writer, until);
  }

  /** A write is over. A load that began meanwhile may be stored if the write changed nothing. */
  lower(key: string, writer: string): void {
    this.#fences.lower(key, writer);
  }

  /** What is kept of the key may only stand in from now on; what is on its way is not kept. */
  soften(key: string): void {
    this.#log.add(key);
    this.#makeStale(key);
  }

  ban(ban: Ban): void {
    this.#checkedFrom = this.#log.next();
    this.#bans.add({ ...ban, number: this.#checkedFrom });
    if (ban.prefix === '' && !ban.isSoft) this.#lists.clear();
  }

  /** Invalidations of a group, or of any, may have been missed: what is kept is stale, what is on its way is not kept. */
  distrust(group?: number): void {
    if (group === undefined) {
      this.ban({ prefix: '', isSoft: true });
      return;
    }
    this.#checkedFrom = this.#log.next();
    this.#distrusted.set(group, this.#checkedFrom);
  }

  #use(key: string): number | undefined {
    this.#endFences(key);
    const at = this.#lists.get(key);
    if (at === undefined || !this.#isLeft(key, at)) return undefined;
    this.#slots.used(at, this.#eras.now);
    return at;
  }

  /** Applies bans and distrust to an entry when it is used; false when a ban took it. */
  #isLeft(key: string, at: number): boolean {
    const since = this.#slots.since(at);
    if (since >= this.#checkedFrom) return true;
    const times = this.#slots.times(at);
    const allowed = this.#bans.apply(key, times, since);
    if (allowed === undefined) {
      this.#lists.delete(key);
      return false;
    }
    const left = this.#isDistrusted(key, since) ? asStale(allowed) : allowed;
    this.#slots.setSince(at, this.#log.now());
    if (left !== times) this.#slots.setStaleAt(at, left.staleAt);
    return true;
  }

  #isDistrusted(key: string, moment: number): boolean {
    return this.#distrusted.size > 0 && (this.#distrusted.get(groupOf(key)) ?? 0) > moment;
  }

  #makeStale(key: string): void {
    const at = this.#lists.get(key);
    if (at !== undefined) this.#slots.setStaleAt(at, asStale(this.#slots.times(at)).staleAt);
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
