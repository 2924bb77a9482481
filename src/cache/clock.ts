// The clocks and timers that coherence runs on, so that a test can hand in its own.
import { randomUUID } from 'node:crypto';

export interface Clock {
  /** Wall clock (ms since the epoch). */
  now: () => number;
  /** Monotonic clock (ms). */
  monotonic: () => number;
  /** Runs once after this time, and after what has arrived meanwhile; the result cancels it. */
  after: (ms: number, run: () => void) => () => void;
  randomId: () => string;
}

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after(ms, run) {
    let immediate: NodeJS.Immediate | undefined;
    // When this process was busy an answer may be here and not read yet.
    const timer = setTimeout(() => (immediate = setImmediate(run)), ms).unref();
    return () => {
      clearTimeout(timer);
      clearImmediate(immediate);
    };
  },
  randomId: randomUUID,
};

export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let isRunning = false;
  return async () => {
    if (isRunning) return;
    isRunning = true;
    try {
      await work();
    } finally {
      isRunning = false;
    }
  };
}
