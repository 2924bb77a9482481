// Clocks and timers that tests can replace, and a timeout for promises.
import { randomUUID } from 'node:crypto';

export interface Clock {
  /** Wall clock (ms since the epoch). */
  now: () => number;
  /** Monotonic clock (ms). */
  monotonic: () => number;
  /** Calls `run` after `ms` and after pending I/O. Returns a cancel function. */
  after: (ms: number, run: () => void) => () => void;
  randomId: () => string;
}

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after(ms, run) {
    let immediate: NodeJS.Immediate | undefined;
    // A reply may be waiting unread after a busy period: read it before the timeout fires.
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

/**
 * Adds a timeout to a promise. @throws the error from `late` if the promise does not settle within
 * `timeoutMs`
 */
export function untilDeadline<T>(
  promise: Promise<T>,
  timeoutMs: number,
  late: () => Error,
  clock: Pick<Clock, 'after'> = systemClock,
): Promise<T> {
  // Promise.race would create twice as many promises for each Redis command.
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
