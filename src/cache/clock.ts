// The clocks and timers of the cache, which tests replace, and a timeout for promises.
import { randomUUID } from 'node:crypto';

export interface Clock {
  /** Wall clock (ms since the epoch). */
  now: () => number;
  /** Monotonic clock (ms). */
  monotonic: () => number;
  /** Calls `run` after `ms` and after pending I/O. Returns a function that cancels it. */
  after: (ms: number, run: () => void) => () => void;
  randomId: () => string;
}

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after(ms, run) {
    let immediate: NodeJS.Immediate | undefined;
    // After a busy period an unread reply may be pending: read it before the timeout fires.
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

/** Timeout for a promise. @throws the error of `late` when the promise has not settled within `timeoutMs` */
export function untilDeadline<T>(
  promise: Promise<T>,
  timeoutMs: number,
  late: () => Error,
  clock: Pick<Clock, 'after'> = systemClock,
): Promise<T> {
  // Every Redis command waits here, and Promise.race would create twice as many promises.
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
