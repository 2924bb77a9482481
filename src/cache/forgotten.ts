// Remembers in which order keys were forgotten, in bounded space.
import { LRUCache } from 'lru-cache';

/**
 * Says whether a key was forgotten since a given moment. Moments are numbers that count forgettings.
 * When a key falls out of the bounded list, its moment becomes the floor: every older ticket, of any
 * key, is refused from then on. A refused ticket costs one more load; it never costs the truth.
 */
export class Forgotten {
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

  forget(key: string): void {
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
