// Invalidations that could not be published while Redis was unavailable. They are published before the next lease.
import { PrefixMap } from '../../handle/prefix-map.js';
import { entriesOf } from '../../handle/handle.js';
import { MAX_BANNED } from './bans.js';
import { type BanChange, type Change, banAll } from './message.js';

type PendingInvalidation = { kind: 'forget' | 'soften'; key: string } | BanChange;

/** A long key counts as several. */
const MAX_KEYS = 100_000;

export class PendingInvalidations {
  readonly #keys = new Map<string, 'forget' | 'soften'>();
  #count = 0;
  readonly #bans = new PrefixMap<BanChange>();

  get size(): number {
    return this.#keys.size + this.#bans.size;
  }

  /**
   * Adds a change. Above the maximum, a soft ban of every key replaces the pending keys, which causes extra loads. A hard ban
   * would delete every record in every instance, and anyone can add keys by authoritative reads.
   */
  add(change: Change): void {
    if (change.kind === 'ban') {
      this.#addBan(change);
      return;
    }
    const isSoft = change.kind === 'soften' || change.kind === 'unknown';
    const { key } = change;
    if (!this.#keys.has(key)) this.#count += entriesOf(key);
    if (!isSoft || !this.#keys.has(key)) this.#keys.set(key, isSoft ? 'soften' : 'forget');
    if (this.#count <= MAX_KEYS) return;
    this.#keys.clear();
    this.#count = 0;
    this.#addBan(banAll(true));
  }

  /**
   * Adds a ban. Each, still unnumbered, affects all entries older than its publication. Above the maximum, one ban of every
   * key replaces them, by which records without a server are lost.
   */
  #addBan(ban: BanChange): void {
    if (this.#isCovered(ban)) return;
    this.#bans.set(ban.prefix, ban);
    if (this.#bans.size <= MAX_BANNED) return;
    const bans = [...this.#bans.entries()];
    for (const [prefix] of bans) this.#bans.delete(prefix);
    this.#bans.set('', banAll(bans.every(([, { isSoft }]) => isSoft)));
  }

  /** Whether another ban makes this one redundant. */
  #isCovered({ prefix, isSoft }: BanChange): boolean {
    for (const known of this.#bans.matching(prefix)) if (!known.isSoft || isSoft) return true;
    return false;
  }

  /** Removes and returns up to `count` changes; the caller adds back those that it cannot publish. */
  take(count: number): PendingInvalidation[] {
    const taken: PendingInvalidation[] = [];
    for (const [prefix, ban] of this.#bans.entries()) {
      if (taken.length >= count) break;
      this.#bans.delete(prefix);
      if (!this.#isCovered(ban)) taken.push(ban);
    }
    for (const [key, kind] of this.#keys) {
      if (taken.length >= count) break;
      this.#keys.delete(key);
      this.#count -= entriesOf(key);
      taken.push({ kind, key });
    }
    return taken;
  }
}
