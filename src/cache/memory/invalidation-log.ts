// The order of key invalidations, in bounded space: it shows whether a load predates an invalidation.
import { LRUCache } from 'lru-cache';

/**
 * A moment is the number of invalidations so far. When a key is evicted from the log, its moment becomes the
 * floor: older tickets of every key are refused from then on, which causes extra loads.
 */
export class InvalidationLog {
  #moment = 0;
  #floor = 0;
  readonly #moments: LRUCache<string, number>;

  constructor(maxKeys = 100_000) {
    this.#moments = new LRUCache<string, number>({
      // The `max` option would preallocate memory for all keys.
      maxSize: maxKeys,
      sizeCalculation: () => 1,
      dispose: (moment, _key, reason) => {
        if (reason === 'evict') this.#floor = Math.max(this.#floor, moment);
      },
    });
  }

  /** Returns the current moment, the ticket of a load that starts now. */
  now(): number {
    return this.#moment;
  }

  add(key: string): void {
    this.#moments.set(key, ++this.#moment);
  }

  /** Starts a new moment and returns it. */
  advance(): number {
    return ++this.#moment;
  }

  isInvalidatedSince(key: string, moment: number): boolean {
    return this.#floor > moment || (this.#moments.get(key) ?? 0) > moment;
  }
}
