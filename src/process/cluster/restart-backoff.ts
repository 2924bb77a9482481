// How long a worker that ended is waited for: what ended it may last, and a start is not for nothing.

const FIRST_MS = 500;
/** No longer: it may be the only worker, and nobody is answered meanwhile. */
const LONGEST_MS = 10_000;
/** Who has served for so long did not end of what ended the one before. */
const SERVED_WELL_MS = 10_000;

/** For one place among the workers. */
export class Backoff {
  #nextMs = FIRST_MS;

  /** The wait before the next start. */
  waitMs(servedMs: number): number {
    const waitMs = servedMs >= SERVED_WELL_MS ? FIRST_MS : this.#nextMs;
    this.#nextMs = Math.min(2 * waitMs, LONGEST_MS);
    return waitMs;
  }
}
