// When the order of use has to be kept exactly, and when nobody will ask for it.

/**
 * What is used again in the same era keeps its place in the list, and so need not be looked up there. A new
 * era begins when so many parts of the entries have been stored: where nothing is stored nothing is evicted,
 * and the order matters to nobody.
 */
const ERAS_PER_TURNOVER = 64;

export class Eras {
  #now = 0;
  /** In this era. */
  #stored = 0;

  get now(): number {
    return this.#now;
  }

  /** One more is stored beside so many. */
  stored(entries: number): void {
    if (++this.#stored * ERAS_PER_TURNOVER < entries) return;
    this.#stored = 0;
    this.#now++;
  }
}
