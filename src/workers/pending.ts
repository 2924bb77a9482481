// Questions sent to another process that are not answered yet.

/** Gives each question a number, and its answer, or undefined when none came in time. */
export class Pending<T> {
  readonly #waiting = new Map<number, (answer: T | undefined) => void>();
  #last = 0;

  ask(timeoutMs: number, send: (id: number) => void): Promise<T | undefined> {
    const id = ++this.#last;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.settle(id, undefined);
      }, timeoutMs);
      this.#waiting.set(id, (answer) => {
        clearTimeout(timer);
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
