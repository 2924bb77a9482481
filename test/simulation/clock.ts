// Virtual time: a queue of events that run in sequence. After each event all pending promise work is done
// before the next event begins.
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

  /** Virtual time in ms, from 0. */
  get now(): number {
    return this.#now;
  }

  /** Number of events that have run. */
  get eventCount(): number {
    return this.#done;
  }

  get trace(): Trace {
    return this.#trace;
  }

  /** Events at the same time run in an order drawn from the seed. */
  after(delayMs: number, label: string, run: () => void, drains = true): void {
    const at = this.#now + Math.max(0, delayMs);
    this.#queue.add({ at, tie: this.#ties.uint32(), number: this.#scheduled++, label, drains, run });
  }

  /** A line of the trace that is not an event. */
  note(line: string): void {
    this.#trace.note(this.#now, line);
  }

  /**
   * Runs all events up to this time, or until `isDone` is true after an event, and then returns true.
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
   * @throws Error if that takes longer in virtual time
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

/** Node runs all microtasks, including those they queue, before the next immediate. */
function drained(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
