// Keys whose last load failed and that are left alone for a while (RFC 8767 section 5, failure recheck).
import { LRUCache } from 'lru-cache';

/** Remembers failed keys in bounded space; a key that falls out is merely asked for again. */
export class Resting {
  readonly #until = new LRUCache<string, number>({ max: 100_000 });

  constructor(
    private readonly forMs: number,
    private readonly now: () => number,
  ) {}

  failed(key: string): void {
    this.#until.set(key, this.now() + this.forMs);
  }

  succeeded(key: string): void {
    this.#until.delete(key);
  }

  isResting(key: string): boolean {
    return (this.#until.get(key) ?? 0) > this.now();
  }
}
