// The memory tier: entries by key, with the fences, bans and invalidations that apply to them.
import { boundedMap } from '../bounded-map.js';
import { type Ban, Bans } from '../coherence/bans.js';
import { Fences } from '../coherence/fences.js';
import { groupOf } from '../coherence/groups.js';
import type { KeyChange } from '../coherence/message.js';
import { type Entry, type KeyedEntry, type Times, asStale, isSame } from '../entry.js';
import type { EntryPin, Lookup } from '../store.js';
import { LruIndex, type ListName, type MemoryBounds, type MemoryUsage } from './lru-index.js';
import { ROW_BYTES, RowStore } from './row-store.js';

export interface MemoryOptions {
  bounds: MemoryBounds;
  now: () => number;
  onEvict?: (list: ListName) => void;
}

/** An entry with the figures shown to the operator. */
export interface InspectedEntry {
  entry: Entry;
  hits: number;
  bytes: number;
}

const listOf = ({ kind }: Entry): ListName => (kind === 'found' ? 'found' : 'notFound');

export class MemoryStore {
  readonly #rows = new RowStore();
  readonly #index: LruIndex;
  readonly #log = new InvalidationLog();
  /** Bans, numbered by moments of the invalidation log. */
  readonly #bans = new Bans();
  readonly #fences = new Fences();
  /** Moments by group. Entries and loads from before a group's moment may have missed an invalidation. */
  readonly #distrusted = new Map<number, number>();
  /** Moment of the newest ban or distrust: later entries need no check. */
  #checkedFrom = 0;
  readonly #now: () => number;

  constructor({ bounds, now, onEvict = () => undefined }: MemoryOptions) {
    this.#now = now;
    this.#index = new LruIndex({ rows: this.#rows, bounds, onEvict });
  }

  get(key: string): Lookup<number> {
    return { entry: this.peek(key), from: 'memory', ticket: this.#log.currentMoment() };
  }

  /** Returns the entry, even during a write (the old record is correct until acknowledged). Counts as a use. */
  peek(key: string): Entry | undefined {
    const at = this.#use(key);
    return at === undefined ? undefined : this.#rows.entry(at);
  }

  /** Does the same, but returns `large` for an entry whose text is slow to read. That is a use, but not a hit. */
  peekSmall(key: string): Entry | 'large' | undefined {
    const at = this.#find(key);
    if (at === undefined) return undefined;
    if (this.#rows.isLarge(at)) return 'large';
    this.#rows.used(at, this.#index.tick);
    return this.#rows.entry(at);
  }

  /** Whether the entry's text is slow to read; undefined without an entry. Does not count as a use. */
  isLarge(key: string): boolean | undefined {
    const at = this.#index.peek(key);
    return at === undefined ? undefined : this.#rows.isLarge(at);
  }

  /** Pins the entry; undefined if memory no longer holds it. */
  pin(key: string, entry: Entry): EntryPin | undefined {
    const at = this.#index.peek(key);
    return at !== undefined && isSame(this.#rows.entry(at), entry) ? this.#rows.pin(at) : undefined;
  }

  /** Returns whether memory would return the pinned entry now. Counts as a use, and is cheaper than a lookup. */
  touchIfCurrent(key: string, pin: EntryPin): boolean {
    this.#expireFences(key);
    const { tick } = this.#index;
    if (this.#rows.touchIfUnchanged(pin, { tick, checkedFrom: this.#checkedFrom })) return true;
    const at = this.#use(key);
    return at !== undefined && this.#rows.pin(at).stamp === pin.stamp;
  }

  /** Returns the times of the entry, without its text, which may be slow to read. Does not count as a use. */
  times(key: string): Times | undefined {
    this.#expireFences(key);
    const at = this.#index.peek(key);
    return at !== undefined && this.#applyBans(key, at) ? this.#rows.times(at) : undefined;
  }

  hits(key: string): number {
    const at = this.#index.peek(key);
    return at === undefined ? 0 : this.#rows.hits(at);
  }

  /** Inspects an entry for the operator; does not count as a use. */
  inspect(key: string): InspectedEntry | undefined {
    this.#expireFences(key);
    const at = this.#index.peek(key);
    if (at === undefined || !this.#applyBans(key, at)) return undefined;
    const entry = this.#rows.entry(at);
    return { entry, hits: this.#rows.hits(at), bytes: this.#index.bytesOf(at) };
  }

  isCurrent(key: string, ticket: number): boolean {
    if (this.#log.isInvalidatedSince(key, ticket)) return false;
    return (
      ticket >= this.#checkedFrom ||
      !(this.#bans.isBannedSince(key, ticket) || this.#isDistrusted(key, ticket))
    );
  }

  accepts(key: string, ticket: number): boolean {
    return !this.#expireFences(key) && this.isCurrent(key, ticket);
  }

  set(key: string, entry: Entry, ticket: number): boolean {
    if (!this.accepts(key, ticket)) return false;
    const list = listOf(entry);
    this.#index.countStore(list);
    const at = this.#rows.add(key, entry, { since: this.#log.currentMoment(), tick: this.#index.tick });
    return this.#index.set(key, at, list === 'found' ? 'newcomers' : list);
  }

  /** Stores an authoritative answer, and invalidates all loads in flight, which are older. */
  replace(key: string, entry: Entry, ticket: number): boolean {
    const isKept = this.set(key, entry, ticket);
    if (isKept) this.#log.add(key);
    return isKept;
  }

  moment(): number {
    return this.#log.currentMoment();
  }

  /**
   * Restores an unrevalidated entry from a file. `kept`: memory already has an entry, or the key is fenced or
   * was invalidated since the ticket was issued. Restored records are no newcomers: a file contains what was kept. Only a
   * record without a server is fresh. It is never evicted, and never refused because the log has dropped other keys: nothing
   * could bring it back, and only a purge could have invalidated it.
   */
  restore(key: string, entry: Entry, ticket: number): 'restored' | 'kept' | 'full' {
    const isUnserved = entry.staleAt > this.#now() && entry.kind !== 'not-found';
    const list = isUnserved ? 'unserved' : listOf(entry);
    const isInvalidated = isUnserved
      ? this.#log.hasSince(key, ticket)
      : this.#log.isInvalidatedSince(key, ticket);
    if (isInvalidated || this.#fences.isRaised(key)) return 'kept';
    if (this.#index.peek(key) !== undefined || this.#bans.apply(key, entry, ticket) === undefined)
      return 'kept';
    const at = this.#rows.add(key, entry, { since: this.#log.currentMoment(), tick: this.#index.tick });
    if (this.#index.hasRoom(at, list)) return this.#index.set(key, at, list) ? 'restored' : 'full';
    this.#rows.drop(at);
    return 'full';
  }

  /**
   * Reads usable entries from row `first` on, up to about `maxBytes` of expanded text. `next`: the row to continue
   * from; undefined at the end. Unusable rows count toward `maxBytes`, because scanning them delays requests.
   */
  readFrom(first: number, maxBytes: number): { entries: KeyedEntry[]; next: number | undefined } {
    const entries: KeyedEntry[] = [];
    let at = first;
    for (let bytes = 0; at < this.#rows.end && bytes < maxBytes; at++) {
      const key = this.#rows.key(at);
      bytes += ROW_BYTES;
      if (key === undefined || this.#isBanned(key, at)) continue;
      const entry = this.#rows.entry(at);
      bytes += entry.values.length + entry.message.length;
      entries.push({ key, entry });
    }
    return { entries, next: at < this.#rows.end ? at : undefined };
  }

  #isBanned(key: string, at: number): boolean {
    const since = this.#rows.since(at);
    return since < this.#checkedFrom && this.#bans.apply(key, this.#rows.times(at), since) === undefined;
  }

  /**
   * Applies a change by any instance. It invalidates the tickets of the loads in flight, except after a write
   * that changed nothing: loads that started during it may still be stored.
   */
  applyChange(change: KeyChange): void {
    const { kind, key } = change;
    // Only a raised fence needs the time.
    if (kind === 'raise' || kind === 'unknown') {
      const now = this.#now();
      this.#expireOldFences(now);
      this.#fences.raise(key, change.fence, now + change.lifeMs);
    } else if (kind === 'changed' || kind === 'unchanged') this.#fences.lower(key, change.fence);
    if (kind !== 'unchanged') this.#log.add(key);
    if (kind === 'changed' || kind === 'forget') this.#index.delete(key);
    if (kind === 'unknown' || kind === 'soften') this.#makeStale(key);
  }

  forget(key: string): void {
    this.applyChange({ kind: 'forget', key });
  }

  ban(ban: Ban): void {
    this.#checkedFrom = this.#log.startMoment();
    this.#bans.add({ ...ban, number: this.#checkedFrom });
    if (ban.prefix === '' && !ban.isSoft) this.#index.clear();
  }

  /** Distrusts a group, or all, after missed messages: entries become stale, and loads in flight are not stored. */
  distrust(group?: number): void {
    if (group === undefined) {
      this.ban({ prefix: '', isSoft: true });
      return;
    }
    this.#checkedFrom = this.#log.startMoment();
    this.#distrusted.set(group, this.#checkedFrom);
  }

  #use(key: string): number | undefined {
    const at = this.#find(key);
    if (at !== undefined) this.#rows.used(at, this.#index.tick);
    return at;
  }

  #find(key: string): number | undefined {
    this.#expireFences(key);
    const at = this.#index.get(key);
    return at !== undefined && this.#applyBans(key, at) ? at : undefined;
  }

  /** Applies bans and distrust to an entry on use. Returns false if a ban has deleted it. */
  #applyBans(key: string, at: number): boolean {
    const since = this.#rows.since(at);
    if (since >= this.#checkedFrom) return true;
    const times = this.#rows.times(at);
    const allowed = this.#bans.apply(key, times, since);
    if (allowed === undefined) {
      this.#index.delete(key);
      return false;
    }
    const present = this.#isDistrusted(key, since) ? asStale(allowed) : allowed;
    this.#rows.setSince(at, this.#log.currentMoment());
    if (present !== times) this.#rows.setStaleAt(at, present.staleAt);
    return true;
  }

  #isDistrusted(key: string, moment: number): boolean {
    return this.#distrusted.size > 0 && (this.#distrusted.get(groupOf(key)) ?? 0) > moment;
  }

  #makeStale(key: string): void {
    const at = this.#index.peek(key);
    if (at !== undefined) this.#rows.setStaleAt(at, asStale(this.#rows.times(at)).staleAt);
  }

  /** Makes the entry stale if a fence expired: the write may have changed the record. Returns whether one is left. */
  #expireFences(key: string): boolean {
    if (!this.#fences.isRaised(key)) return false;
    if (this.#fences.removeExpired(key, this.#now())) this.#makeStale(key);
    return this.#fences.isRaised(key);
  }

  /** Removes the expired fences of up to two keys per write, because these keys may never be read again. */
  #expireOldFences(now: number): void {
    for (let times = 0; times < 2; times++) {
      const key = this.#fences.takeExpired(now);
      if (key !== undefined) this.#makeStale(key);
    }
  }

  usage(): MemoryUsage[] {
    return this.#index.usage();
  }
}

/**
 * A moment is the number of invalidations so far. When a key is evicted from the log, its moment becomes the
 * floor: older tickets of every key are refused from then on, which causes extra loads.
 */
export class InvalidationLog {
  #moment = 0;
  #floor = 0;
  readonly #moments = boundedMap<number>(100_000, {
    dispose: (moment, _key, reason) => {
      if (reason === 'evict') this.#floor = Math.max(this.#floor, moment);
    },
  });

  /** Returns the current moment, the ticket of a load that starts now. */
  currentMoment(): number {
    return this.#moment;
  }

  add(key: string): void {
    this.#moments.set(key, ++this.#moment);
  }

  startMoment(): number {
    return ++this.#moment;
  }

  isInvalidatedSince(key: string, moment: number): boolean {
    return this.#floor > moment || this.hasSince(key, moment);
  }

  /** Whether the log has an invalidation of this key since. */
  hasSince(key: string, moment: number): boolean {
    return (this.#moments.get(key) ?? 0) > moment;
  }
}
