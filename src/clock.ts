// Clocks and timers that tests can replace, and a timeout for promises.
import { randomUUID } from 'node:crypto';

interface Clocks {
  /** Wall clock (ms since the epoch), for times that leave this process. It may be wrong, and may be set. */
  wall: () => number;
  monotonic: () => number;
}

export interface Clock extends Clocks {
  /** Time for TTLs, ages and timeouts (ms since the epoch): never steps back. See `createSteadyTime`. */
  now: () => number;
  /** Calls `run` after `ms` and after pending I/O. Returns a cancel function. */
  after: (ms: number, run: () => void) => () => void;
  randomId: () => string;
}

/** A wall clock that gains more than this on the monotonic clock was set, or the machine was suspended (ms). */
const MAX_GAIN_MS = 250;

/**
 * Returns a time that starts at the wall clock and advances with the monotonic clock. It also advances when
 * the wall clock jumps ahead, because the monotonic clock stops while a machine is suspended. A wall clock
 * that is set back changes nothing, so a wrong clock shortens TTLs, and never prolongs them.
 */
export function createSteadyTime({ wall, monotonic }: Clocks): () => number {
  let offset = wall() - monotonic();
  /** The least difference between both clocks since the last jump. */
  let least = offset;
  return function now() {
    const elapsed = monotonic();
    const difference = wall() - elapsed;
    if (difference < least) least = difference;
    else if (difference > least + MAX_GAIN_MS) {
      offset += difference - least;
      least = difference;
    }
    return Math.floor(offset + elapsed);
  };
}

const systemClocks = { wall: Date.now, monotonic: performance.now.bind(performance) };

export const systemClock: Clock = {
  ...systemClocks,
  now: createSteadyTime(systemClocks),
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

/** Returns the pause after a number of consecutive failures (ms). */
export const backoffMs = (failures: number): number => Math.min(1000 * 2 ** (failures - 1), 60_000);

export const pause = ({ after }: { after: Clock['after'] }, ms: number): Promise<void> =>
  new Promise((resolve) => after(ms, resolve));

/** Calls `work` each `everyMs` until the returned function is called. */
export function repeat(
  { after }: { after: Clock['after'] },
  everyMs: number,
  work: () => unknown,
): () => void {
  let cancel = (): void => undefined;
  const schedule = (): void => {
    cancel = after(everyMs, () => {
      schedule();
      work();
    });
  };
  schedule();
  return () => cancel();
}

const LOG_INTERVAL_MS = 60_000;

/** Returns a function that calls `log` at most once a minute, with the number of calls since then. */
export function onceAMinute<Given extends unknown[]>(
  { now }: { now: Clock['now'] },
  log: (count: number, ...given: Given) => void,
): (...given: Given) => void {
  let count = 0;
  let loggedAt = -Infinity;
  return (...given) => {
    count++;
    if (now() - loggedAt < LOG_INTERVAL_MS) return;
    log(count, ...given);
    loggedAt = now();
    count = 0;
  };
}

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

/** Adds a timeout to a promise. @throws the error from `late` if it has not settled in time */
export function untilDeadline<T>(
  promise: Promise<T>,
  timeoutMs: number,
  late: () => Error,
  { after }: { after: Clock['after'] } = systemClock,
): Promise<T> {
  // Promise.race would create twice as many promises for each Redis command.
  return new Promise((resolve, reject) => {
    const cancel = after(timeoutMs, () => reject(late()));
    const settle =
      <V>(end: (result: V) => void) =>
      (result: V): void => {
        cancel();
        end(result);
      };
    promise.then(settle(resolve), settle(reject));
  });
}

/** Waits until a promise has settled, but at most `timeoutMs`. Never rejects. */
export const waitAtMost = (
  promise: Promise<unknown>,
  timeoutMs: number,
  clock: { after: Clock['after'] },
): Promise<unknown> =>
  untilDeadline(promise, timeoutMs, () => new Error('late'), clock).catch(() => undefined);
