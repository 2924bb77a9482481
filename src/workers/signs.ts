// Which workers give no sign of life: they stand still, or are too busy to do anything for others.

/** How often to look (ms); a worker gives a sign more often. */
export const LOOK_EVERY_MS = 500;
export const SIGN_EVERY_MS = 400;

/** Looks in a row without a sign; one alone may be late. */
const MOST_MISSED = 3;

/** Counts looks instead of time: when this process is the one that was late, no sign has been missed. */
export class Signs {
  readonly #missed = new Map<number, number>();

  seen(worker: number): void {
    this.#missed.set(worker, 0);
  }

  left(worker: number): void {
    this.#missed.delete(worker);
  }

  look(): void {
    for (const [worker, missed] of this.#missed) this.#missed.set(worker, missed + 1);
  }

  readonly isSilent = (worker: number): boolean => (this.#missed.get(worker) ?? 0) >= MOST_MISSED;
}
