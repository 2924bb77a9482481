// Settings that a reload replaces. A part that reads them at each use needs no other notice.
import { errorText } from '../errors.js';

export class Live<T> {
  readonly #listeners: (() => void)[] = [];

  /** `current`: assigned only by `reload`. A field, because each request reads it several times. */
  constructor(public current: T) {}

  onReload(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Derives a value from the settings; each reload derives it again. */
  derive<Made>(make: (settings: T) => Made): Live<Made> {
    const made = new Live(make(this.current));
    this.onReload(() => made.reload(make(this.current)));
    return made;
  }

  /** @throws the error of a listener, and those of restoring the previous settings; the settings are then as before */
  reload(next: T): void {
    const before = this.current;
    this.current = next;
    const notified: (() => void)[] = [];
    try {
      for (const listener of this.#listeners) {
        notified.push(listener);
        listener();
      }
    } catch (error) {
      this.current = before;
      // Also the listener that failed, because it may use parts that those before it now replace again.
      const reasons = notified.flatMap(errorIn);
      if (reasons.length === 0) throw error;
      const remedy = 'the previous settings are not restored everywhere, restart the proxy';
      throw new Error(`${errorText(error)}; ${remedy}: ${reasons.join('; ')}`, { cause: error });
    }
  }
}

function errorIn(listener: () => void): string[] {
  try {
    listener();
    return [];
  } catch (error) {
    return [errorText(error)];
  }
}
