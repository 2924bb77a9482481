// What was changed while Redis was away: reported before this instance counts as back.
import type { BanChange, Change } from './message.js';

type Pending = { kind: 'forget' | 'soften'; key: string } | BanChange;

const MAX_KEYS = 100_000;

export class PendingInvalidations {
  readonly #keys = new Map<string, 'forget' | 'soften'>();
  #bans: BanChange[] = [];
  readonly #maxKeys: number;

  constructor(maxKeys = MAX_KEYS) {
    this.#maxKeys = maxKeys;
  }

  get size(): number {
    return this.#keys.size + this.#bans.length;
  }

  /** When there are too many keys, every key is forgotten instead, which costs loads. */
  add(change: Change): void {
    if (change.kind === 'ban') {
      this.#bans.push(change);
      return;
    }
    const isSoft = change.kind === 'soften' || change.kind === 'unknown';
    if (!isSoft || !this.#keys.has(change.key)) this.#keys.set(change.key, isSoft ? 'soften' : 'forget');
    if (this.#keys.size <= this.#maxKeys) return;
    this.#keys.clear();
    this.addAll();
  }

  /** Whatever Redis holds is not to be used. */
  addAll(): void {
    this.#bans = [{ kind: 'ban', prefix: '', isSoft: false, number: 0 }];
  }

  /** So many of them; to be added again when they cannot be published. */
  take(count: number): Pending[] {
    const taken: Pending[] = this.#bans.splice(0, count);
    for (const [key, kind] of this.#keys) {
      if (taken.length >= count) break;
      this.#keys.delete(key);
      taken.push({ kind, key });
    }
    return taken;
  }
}
