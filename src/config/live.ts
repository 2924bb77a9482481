// Settings that a reload replaces. A part that reads them at each use needs no other notice.
export class Live<T> {
  /** Assigned only by `reload`. A field, because each request reads it several times. */
  current: T;
  readonly #listeners: (() => void)[] = [];

  constructor(initial: T) {
    this.current = initial;
  }

  /** Calls `listener` after each reload, in the order of the calls. */
  onReload(listener: () => void): void {
    this.#listeners.push(listener);
  }

  reload(next: T): void {
    this.current = next;
    for (const listener of this.#listeners) listener();
  }
}
