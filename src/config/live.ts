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

  /** @throws the error of a listener; the settings are then as before */
  reload(next: T): void {
    const before = this.current;
    this.current = next;
    const notified: (() => void)[] = [];
    try {
      for (const listener of this.#listeners) {
        listener();
        notified.push(listener);
      }
    } catch (error) {
      this.current = before;
      for (const listener of notified) listener();
      throw error;
    }
  }
}
