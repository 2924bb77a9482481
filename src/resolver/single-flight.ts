// Single flight: concurrent callers of a key share the load in flight, or the next load.

/** Loads in flight by key. A detached load still resolves for its callers, but the next caller starts a new load. */
export class SingleFlight<L extends { answer: Promise<unknown> }> {
  readonly #loads = new Map<string, L>();

  get(key: string): L | undefined {
    return this.#loads.get(key);
  }

  /** Adds a load, until it has settled. */
  add(key: string, load: L): void {
    this.#loads.set(key, load);
    const remove = (): void => {
      if (this.#loads.get(key) === load) this.#loads.delete(key);
    };
    load.answer.then(remove, remove);
  }

  detach(key: string): void {
    this.#loads.delete(key);
  }

  detachUnder(prefix: string): void {
    for (const key of this.#loads.keys()) if (key.startsWith(prefix)) this.#loads.delete(key);
  }
}

/** Runs a key's work serially. Callers share the next run: one in progress may predate the reason for their call. */
export class SerialFlight<T = void> {
  readonly #last = new Map<string, { hasBegun: boolean; done: Promise<T> }>();

  join(key: string, start: () => Promise<T>): Promise<T> {
    const last = this.#last.get(key);
    if (last?.hasBegun === false) return last.done;
    const begin = (): Promise<T> => {
      next.hasBegun = true;
      return start();
    };
    const run = last === undefined ? start() : last.done.then(begin, begin);
    const done = run.finally(() => {
      if (this.#last.get(key) === next) this.#last.delete(key);
    });
    const next = { hasBegun: last === undefined, done };
    this.#last.set(key, next);
    return done;
  }
}
