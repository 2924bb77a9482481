// Keys that are being written: what is known of them may be over at any moment.
import { memberOf } from './message.js';

/**
 * Fences by key and writer. A fence has a life, because a writer that is killed can lower nothing:
 * after it the write is over, one way or the other, and what was known before is not to be believed.
 */
export class Fences {
  readonly #writers = new Map<string, Map<string, number>>();

  /** `until` in ms since epoch. */
  raise(key: string, writer: string, until: number): void {
    const writers = this.#writers.get(key) ?? new Map<string, number>();
    // Anew at the end: the first key is then the one that was fenced longest ago.
    this.#writers.delete(key);
    this.#writers.set(key, writers.set(writer, until));
  }

  lower(key: string, writer: string): void {
    const writers = this.#writers.get(key);
    writers?.delete(writer);
    if (writers?.size === 0) this.#writers.delete(key);
  }

  isRaised(key: string): boolean {
    return this.#writers.has(key);
  }

  /** Takes away the fences that have run out; true when a writer never said how its write ended. */
  takeRunOut(key: string, now: number): boolean {
    const over = [...(this.#writers.get(key) ?? [])].filter(([, until]) => until <= now);
    for (const [writer] of over) this.lower(key, writer);
    return over.length > 0;
  }

  /** The key that was fenced longest ago, when a fence of it has run out. */
  firstRunOut(now: number): string | undefined {
    for (const [key, writers] of this.#writers) {
      return [...writers.values()].some((until) => until <= now) ? key : undefined;
    }
    return undefined;
  }

  /** Keys with a fence that was raised by the member, or by any. */
  keysOf(member?: string): string[] {
    const isOf = (writer: string): boolean => member === undefined || memberOf(writer) === member;
    return [...this.#writers].filter(([, writers]) => [...writers.keys()].some(isOf)).map(([key]) => key);
  }

  get size(): number {
    return this.#writers.size;
  }
}
