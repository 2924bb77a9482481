// The clocks and timers of the cache, so that a test can hand in its own, and the timeout of a promise.
import { randomUUID } from 'node:crypto';

export interface Clock {
  /** Wall clock (ms since the epoch). */
  now: () => number;
  /** Monotonic clock (ms). */
  monotonic: () => number;
  /** Calls `run` after this time, and after pending I/O. The result cancels it. */
  after: (ms: number, run: () => void) => () => void;
  randomId: () => string;
}

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after(ms, run) {
    let immediate: NodeJS.Immediate | undefined;
    // After a busy period a reply may have arrived that is not read yet: read it before the timeout.
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

/** Timeout for a promise. @throws what `late` makes, when the promise has not settled within `timeoutMs` */
export function untilDeadline<T>(
  promise: Promise<T>,
  timeoutMs: number,
  late: () => Error,
  clock: Pick<Clock, 'after'> = systemClock,
): Promise<T> {
  // Not with Promise.race: each Redis command waits here, and this takes half as many promises.
  return new Promise((resolve, reject) => {
    const cancel = clock.after(timeoutMs, () => {
      reject(late());
    });
    const settle =
      <V>(end: (result: V) => void) =>
      (result: V): void => {
        cancel();
        end(result);
      };
    promise.then(settle(resolve), settle(reject));
  });
}
