// How long something has been away, and whether it is worth waiting for.
import { untilDeadline } from './deadline.js';

/** Looked for every second; what is away for longer than this is not away for a moment. */
export const MOMENT_MS = 2500;

export class Absence {
  #beganAt = -Infinity;
  #end: () => void = () => undefined;
  #over: Promise<void> = Promise.resolve();

  began(): void {
    this.#beganAt = performance.now();
    this.#over = new Promise((end) => (this.#end = end));
  }

  ended(): void {
    this.#end();
  }

  /** Settles when it is over, or has lasted for longer than a moment. */
  async passed(): Promise<void> {
    const leftMs = this.#beganAt + MOMENT_MS - performance.now();
    if (leftMs <= 0) return;
    await untilDeadline(this.#over, leftMs, () => new Error('away')).catch(() => undefined);
  }
}
