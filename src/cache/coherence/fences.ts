// Fences mark keys with a write in flight. While a fence is raised, no load of its key is stored.
import { type Change, memberOf } from './message.js';

/**
 * Fences by key and writer. A fence expires, because a killed writer cannot lower it. The write may have
 * changed the record by then, so the cached entry becomes stale.
 */
export class Fences {
  readonly #writers = new Map<string, Map<string, number>>();

  /** Raises a fence that expires at `until` (ms since the epoch). */
  raise(key: string, writer: string, until: number): void {
    const writers = this.#writers.get(key) ?? new Map<string, number>();
    // Reinserting moves the key to the end: the map is ordered by the time of the last fence.
    this.#writers.delete(key);
    this.#writers.set(key, writers.set(writer, until));
  }

  lower(key: string, writer: string): void {
    const writers = this.#writers.get(key);
    writers?.delete(writer);
    if (writers?.size === 0) this.#writers.delete(key);
  }

  /** Raises or lowers the change's fence. `unknown` raises it again, for processes started since `raise`. */
  track(change: Change, now: number): void {
    if (change.kind === 'raise' || change.kind === 'unknown')
      this.raise(change.key, change.fence, now + change.lifeMs);
    else if (change.kind === 'changed' || change.kind === 'unchanged') this.lower(change.key, change.fence);
  }

  isRaised(key: string): boolean {
    return this.#writers.has(key);
  }

  /** Removes the expired fences of a key. Returns whether there were any. */
  removeExpired(key: string, now: number): boolean {
    const expired = [...(this.#writers.get(key) ?? [])].filter(([, until]) => until <= now);
    for (const [writer] of expired) this.lower(key, writer);
    return expired.length > 0;
  }

  /** Removes the expired fences of the least recently fenced key. Returns the key if there were any. */
  takeExpired(now: number): string | undefined {
    const [key] = this.#writers.keys();
    return key !== undefined && this.removeExpired(key, now) ? key : undefined;
  }

  keys(): string[] {
    return [...this.#writers.keys()];
  }

  /** Removes all fences raised by a member. Returns their keys. */
  removeOf(member: string): string[] {
    const keys = new Set<string>();
    for (const [key, writers] of this.#writers)
      for (const writer of writers.keys())
        if (memberOf(writer) === member) {
          this.lower(key, writer);
          keys.add(key);
        }
    return [...keys];
  }
}
