// Invalidations that could not be published while Redis was unavailable. They are published before the next lease.
import { entriesOf } from '../bounded-map.js';
import { MAX_BANNED, includes } from './bans.js';
import { BAN_ALL, type BanChange, type Change } from './message.js';

type PendingInvalidation = { kind: 'forget' | 'soften'; key: string } | BanChange;

/** A long key counts as several. */
const MAX_KEYS = 100_000;

export class PendingInvalidations {
  readonly #keys = new Map<string, 'forget' | 'soften'>();
  #count = 0;
  #bans: BanChange[] = [];

  get size(): number {
    return this.#keys.size + this.#bans.length;
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
    this.#addBan({ ...BAN_ALL, isSoft: true });
  }

  /**
   * Adds a ban and drops those it includes. Each, still unnumbered, affects all entries older than its publication. Above
   * the maximum, one ban of every key replaces them, by which records without a server are lost.
   */
  #addBan(ban: BanChange): void {
    if (this.#bans.some((known) => includes(known, ban))) return;
    this.#bans = [...this.#bans.filter((known) => !includes(ban, known)), ban];
    if (this.#bans.length <= MAX_BANNED) return;
    this.#bans = [{ ...BAN_ALL, isSoft: this.#bans.every(({ isSoft }) => isSoft) }];
  }

  /** Removes and returns up to `count` changes; the caller adds back those that it cannot publish. */
  take(count: number): PendingInvalidation[] {
    const taken: PendingInvalidation[] = this.#bans.splice(0, count);
    for (const [key, kind] of this.#keys) {
      if (taken.length >= count) break;
      this.#keys.delete(key);
      this.#count -= entriesOf(key);
      taken.push({ kind, key });
    }
    return taken;
  }
}
