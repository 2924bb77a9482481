// Remembers in which order keys were invalidated, in bounded space.
import { LRUCache } from 'lru-cache';

/**
 * Tells whether a key was invalidated since a given moment. Moments are numbers that count invalidations.
 * When a key falls out of the bounded list, its moment becomes the floor: every older ticket, of any
 * key, is refused from then on, which costs a load.
 */
export class InvalidationLog {
  #moment = 0;
  #floor = 0;
  readonly #moments: LRUCache<string, number>;

  constructor(maxKeys = 100_000) {
    this.#moments = new LRUCache<string, number>({
      max: maxKeys,
      dispose: (moment, _key, reason) => {
        if (reason === 'evict') this.#floor = Math.max(this.#floor, moment);
      },
    });
  }

  /** The present moment: a ticket for what is loaded from here on. */
  now(): number {
    return this.#moment;
  }

  add(key: string): void {
    this.#moments.set(key, ++this.#moment);
  }

  /** Begins a new moment: what is ticketed from here on is newer. */
  next(): number {
    return ++this.#moment;
  }

  isSince(key: string, moment: number): boolean {
    return this.#floor > moment || (this.#moments.get(key) ?? 0) > moment;
  }
}
