// Invalidations that could not be published while Redis was unavailable. They are published before the next
// lease.
import { MAX_BANS, includes } from './bans.js';
import { BAN_ALL, type BanChange, type Change } from './message.js';

type PendingInvalidation = { kind: 'forget' | 'soften'; key: string } | BanChange;

const MAX_KEYS = 100_000;

export class PendingInvalidations {
  readonly #keys = new Map<string, 'forget' | 'soften'>();
  #bans: BanChange[] = [];

  constructor(private readonly maxKeys = MAX_KEYS) {}

  get size(): number {
    return this.#keys.size + this.#bans.length;
  }

  /**
   * Adds a change. Above the maximum, a ban of every key replaces the pending keys, which causes extra loads.
   */
  add(change: Change): void {
    if (change.kind === 'ban') {
      this.#addBan(change);
      return;
    }
    const isSoft = change.kind === 'soften' || change.kind === 'unknown';
    if (!isSoft || !this.#keys.has(change.key)) this.#keys.set(change.key, isSoft ? 'soften' : 'forget');
    if (this.#keys.size <= this.maxKeys) return;
    this.#keys.clear();
    this.#addBan(BAN_ALL);
  }

  /**
   * Adds a ban and drops those it includes. Pending bans are not numbered: each affects all entries older
   * than its publication.
   */
  #addBan(ban: BanChange): void {
    if (this.#bans.some((known) => includes(known, ban))) return;
    this.#bans = [...this.#bans.filter((known) => !includes(ban, known)), ban];
    if (this.#bans.length <= MAX_BANS) return;
    this.#bans = [{ ...BAN_ALL, isSoft: this.#bans.every(({ isSoft }) => isSoft) }];
  }

  /** Removes and returns up to `count` changes; the caller adds back those that it cannot publish. */
  take(count: number): PendingInvalidation[] {
    const taken: PendingInvalidation[] = this.#bans.splice(0, count);
    for (const [key, kind] of this.#keys) {
      if (taken.length >= count) break;
      this.#keys.delete(key);
      taken.push({ kind, key });
    }
    return taken;
  }
}
