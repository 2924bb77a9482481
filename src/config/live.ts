// Settings that a reload replaces. A part that reads them at each use needs no other notice.
export class Live<T> {
  #current: T;
  readonly #listeners: (() => void)[] = [];

  constructor(initial: T) {
    this.#current = initial;
  }

  get current(): T {
    return this.#current;
  }

  /** Calls `listener` after each reload, in the order of the calls. */
  onReload(listener: () => void): void {
    this.#listeners.push(listener);
  }

  reload(next: T): void {
    this.#current = next;
    for (const listener of this.#listeners) listener();
  }
}
