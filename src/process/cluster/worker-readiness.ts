// When the pool of workers is ready, and when an exited worker is restarted.

/** Workers report every 400 ms; one that is silent for this long has a blocked event loop. */
const SILENT_MS = 5000;

/** Ready as long as one worker is: slow workers accept fewer connections anyway. */
export class PoolReadiness {
  readonly #reports = new Map<number, { isReady: boolean; at: number }>();

  report(worker: number, isReady: boolean, now: number): void {
    this.#reports.set(worker, { isReady, at: now });
  }

  remove(worker: number): void {
    this.#reports.delete(worker);
  }

  isReady(now: number): boolean {
    return [...this.#reports.values()].some(({ isReady, at }) => isReady && now - at < SILENT_MS);
  }
}

const FIRST_DELAY_MS = 500;
/** It may be the only worker: until then no request is answered. */
const MAX_DELAY_MS = 10_000;
/** A worker that ran this long was not in a crash loop: the backoff starts again. */
const STABLE_AFTER_MS = 10_000;

/** Exponential backoff of one place in the pool. */
export class RestartBackoff {
  #nextMs = FIRST_DELAY_MS;

  /** @returns the delay before the next start (ms) */
  delayMs(servedMs: number): number {
    const delayMs = servedMs >= STABLE_AFTER_MS ? FIRST_DELAY_MS : this.#nextMs;
    this.#nextMs = Math.min(2 * delayMs, MAX_DELAY_MS);
    return delayMs;
  }
}
