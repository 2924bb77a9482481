// A clock that tests advance; advancing it runs due timers.
import type { Clock } from '../../src/clock.js';

interface Timer {
  at: number;
  run: () => void;
}

export interface ManualClock extends Clock {
  /** Settles pending promises, advances both clocks by `ms`, and runs due timers in order. */
  pass: (ms: number) => Promise<void>;
  /** Advances both clocks by `ms` without running timers, as while a process is stopped. */
  stop: (ms: number) => void;
  /** Moves only the wall clock, by `ms`. */
  setBy: (ms: number) => void;
  /** Returns the number of timers that have neither run nor been cancelled. */
  timers: () => number;
}

export const CLOCK_NOW = 1_000_000;

export function createManualClock(): ManualClock {
  let monotonic = 0;
  let offset = CLOCK_NOW;
  let ids = 0;
  const timers = new Set<Timer>();
  const nextDue = (until: number): Timer | undefined =>
    [...timers].filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0];
  const wall = (): number => offset + monotonic;
  return {
    now: wall,
    wall,
    monotonic: () => monotonic,
    after(ms, run) {
      const timer = { at: monotonic + ms, run };
      timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    },
    randomId: () => `member-${++ids}`,
    async pass(ms) {
      await settled();
      const until = monotonic + ms;
      for (let due = nextDue(until); due !== undefined; due = nextDue(until)) {
        timers.delete(due);
        monotonic = Math.max(monotonic, due.at);
        due.run();
        await settled();
      }
      monotonic = until;
      await settled();
    },
    stop(ms) {
      monotonic += ms;
    },
    setBy(ms) {
      offset += ms;
    },
    timers: () => timers.size,
  };
}

/** Waits for all work that does not depend on time. */
export async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** Whether a promise settles before time advances. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let is = false;
  const note = (): void => {
    is = true;
  };
  promise.then(note, note);
  await settled();
  return is;
}
