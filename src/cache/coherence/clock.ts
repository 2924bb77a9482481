// The clocks and timers that coherence runs on, so that a test can hand in its own.
import { randomUUID } from 'node:crypto';

export interface Clock {
  /** Wall clock (ms since the epoch). */
  now: () => number;
  /** Monotonic clock (ms). */
  monotonic: () => number;
  /** Runs once after so many ms; the result cancels it. */
  after: (ms: number, run: () => void) => () => void;
  randomId: () => string;
}

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms).unref();
    return () => {
      clearTimeout(timer);
    };
  },
  randomId: randomUUID,
};
