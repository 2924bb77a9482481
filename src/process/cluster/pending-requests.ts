// Questions sent to another process that are not answered yet.
import { type Clock, systemClock } from '../../cache/clock.js';

/** Gives each question a number, and its answer, or undefined when none came in time. */
export class Pending<T> {
  readonly #waiting = new Map<number, (answer: T | undefined) => void>();
  readonly #clock: Pick<Clock, 'after'>;
  #last = 0;

  constructor(clock: Pick<Clock, 'after'> = systemClock) {
    this.#clock = clock;
  }

  ask(timeoutMs: number, send: (id: number) => void): Promise<T | undefined> {
    const id = ++this.#last;
    return new Promise((resolve) => {
      const cancel = this.#clock.after(timeoutMs, () => {
        this.settle(id, undefined);
      });
      this.#waiting.set(id, (answer) => {
        cancel();
        resolve(answer);
      });
      send(id);
    });
  }

  settle(id: number, answer: T | undefined): void {
    const resolve = this.#waiting.get(id);
    this.#waiting.delete(id);
    resolve?.(answer);
  }
}
