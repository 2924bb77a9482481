// Virtual time: an event queue. All pending promise jobs complete before the next event runs.
import { setImmediate } from 'node:timers';
import { type Event, EventQueue } from './event-queue.js';
import type { Random } from './random.js';
import type { Trace } from './trace.js';

export class Scheduler {
  readonly #queue = new EventQueue();
  readonly #ties: Random;
  readonly #trace: Trace;
  #now = 0;
  #scheduled = 0;
  #done = 0;

  constructor(random: Random, trace: Trace) {
    this.#ties = random.stream('ties');
    this.#trace = trace;
  }

  /** Virtual time in ms since the start. */
  get now(): number {
    return this.#now;
  }

  get eventCount(): number {
    return this.#done;
  }

  get trace(): Trace {
    return this.#trace;
  }

  /** Schedules an event. The seed decides the order of simultaneous events. */
  after(delayMs: number, label: string, run: () => void, drains = true): void {
    const at = this.#now + Math.max(0, delayMs);
    this.#queue.add({ at, tie: this.#ties.uint32(), number: this.#scheduled++, label, drains, run });
  }

  /** Adds a line to the trace without an event. */
  note(line: string): void {
    this.#trace.note(this.#now, line);
  }

  /**
   * Runs all events up to this time and returns false, or returns true once `isDone` holds after an event.
   * @throws the error of an event
   */
  async runUntil(time: number, isDone: () => boolean = () => false): Promise<boolean> {
    await drained();
    while (!isDone()) {
      const { first } = this.#queue;
      if (first === undefined || first.at > time) {
        this.#now = Math.max(this.#now, time);
        return false;
      }
      this.#queue.take();
      this.#run(first);
      if (first.drains) await drained();
    }
    return true;
  }

  runFor(ms: number): Promise<boolean> {
    return this.runUntil(this.#now + ms);
  }

  /**
   * Runs events until the promise settles, and returns its value.
   * @throws Error when the promise takes longer than `withinMs` of virtual time
   */
  async settle<T>(promise: Promise<T>, withinMs = 60_000): Promise<T> {
    let isSettled = false;
    const settled = promise.finally(() => {
      isSettled = true;
    });
    settled.catch(() => undefined);
    const inTime = await this.runUntil(this.#now + withinMs, () => isSettled);
    if (!inTime) throw new Error(`not settled within ${withinMs} ms of virtual time`);
    return settled;
  }

  #run(event: Event): void {
    this.#now = event.at;
    this.#done++;
    this.#trace.note(event.at, event.label);
    event.run();
  }
}

/** Waits for all microtasks: Node runs them, and those they queue, before the next immediate. */
function drained(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
