// Keys that Redis has to be told about once it listens, and those it may have forgotten that it was told.
export interface DebtsOptions {
  /** Most keys that are remembered one by one. */
  mostKeys?: number;
  now: () => number;
}

/**
 * `forget`: nobody knows of it. `soften`: everybody was told, and only Redis may have lost that: what the others
 * keep they loaded since, and it may stand in.
 */
export type Debt = 'forget' | 'soften';

const MOST_KEYS = 100_000;
/** Longer than a replica lags behind its master, or a disk behind its memory (`appendfsync everysec`). */
const RECENT_MS = 10_000;
const MOST_RECENT = 10_000;

/**
 * When more keys are owed than can be remembered, everything is: then all that is shared is made
 * invisible at once, which costs loads but never the truth.
 */
export class Debts {
  readonly #owed = new Map<string, Debt>();
  /** In the order in which they were told. */
  readonly #recent = new Map<string, number>();
  readonly #mostKeys: number;
  readonly #now: () => number;
  #owesAll = false;
  /** When one was dropped from the recent ones for lack of room. */
  #droppedAt = -Infinity;

  constructor({ mostKeys = MOST_KEYS, now }: DebtsOptions) {
    this.#mostKeys = mostKeys;
    this.#now = now;
  }

  get isEmpty(): boolean {
    return !this.#owesAll && this.#owed.size === 0;
  }

  owe(key: string, debt: Debt = 'forget'): void {
    if (this.#owesAll || this.#owed.get(key) === 'forget') return;
    this.#owed.set(key, debt);
    if (this.#owed.size > this.#mostKeys) this.oweAll();
  }

  oweAll(): void {
    this.#owesAll = true;
    this.#owed.clear();
  }

  /** Redis was told. */
  told(key: string): void {
    const at = this.#now();
    this.#recent.delete(key);
    this.#recent.set(key, at);
    for (const [old, toldAt] of this.#recent) {
      const isRecent = toldAt > at - RECENT_MS;
      if (isRecent && this.#recent.size <= MOST_RECENT) break;
      this.#recent.delete(old);
      if (isRecent) this.#droppedAt = toldAt;
    }
  }

  /** Redis was lost: who takes over may not know what was told last (replication is asynchronous). */
  oweRecent(): void {
    const since = this.#now() - RECENT_MS;
    if (this.#droppedAt > since) this.oweAll();
    for (const [key, at] of this.#recent) if (at > since) this.owe(key, 'soften');
    this.#recent.clear();
  }

  /**
   * What is owed is taken before it is said, and owed again when that fails: what comes to be owed
   * meanwhile is another debt, even for the same key.
   */
  takeAll(): boolean {
    const owedAll = this.#owesAll;
    this.#owesAll = false;
    return owedAll;
  }

  /** So many of the keys that are owed, and what. */
  take(count: number): [key: string, debt: Debt][] {
    const taken: [key: string, debt: Debt][] = [];
    for (const [key, debt] of this.#owed) {
      this.#owed.delete(key);
      if (taken.push([key, debt]) === count) break;
    }
    return taken;
  }
}
