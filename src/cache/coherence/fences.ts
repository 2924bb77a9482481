// Fences: keys with a write in flight. While one is raised, no load of its key is stored.
import { type Change, memberOf } from './message.js';

/**
 * Fences by key and writer. A fence expires, because a writer that is killed cannot lower it. Its write may have changed
 * the record by then, so an entry from before counts as stale.
 */
export class Fences {
  readonly #writers = new Map<string, Map<string, number>>();

  /** `until` in ms since epoch. */
  raise(key: string, writer: string, until: number): void {
    const writers = this.#writers.get(key) ?? new Map<string, number>();
    // Insert it again at the end: the map is ordered by when a key was last fenced.
    this.#writers.delete(key);
    this.#writers.set(key, writers.set(writer, until));
  }

  lower(key: string, writer: string): void {
    const writers = this.#writers.get(key);
    writers?.delete(writer);
    if (writers?.size === 0) this.#writers.delete(key);
  }

  /** Raises or lowers the fence that the change names. */
  track(change: Change, now: number): void {
    if (change.kind === 'raise' || change.kind === 'unknown')
      this.raise(change.key, change.fence, now + change.lifeMs);
    else if (change.kind === 'changed' || change.kind === 'unchanged') this.lower(change.key, change.fence);
  }

  isRaised(key: string): boolean {
    return this.#writers.has(key);
  }

  /** Removes expired fences of the key; true when there were any. */
  removeExpired(key: string, now: number): boolean {
    const expired = [...(this.#writers.get(key) ?? [])].filter(([, until]) => until <= now);
    for (const [writer] of expired) this.lower(key, writer);
    return expired.length > 0;
  }

  /** Removes the expired fences of the key that was fenced longest ago; returns the key if there were any. */
  takeExpired(now: number): string | undefined {
    const [key] = this.#writers.keys();
    return key !== undefined && this.removeExpired(key, now) ? key : undefined;
  }

  keys(): string[] {
    return [...this.#writers.keys()];
  }

  /** Removes the fences that this member has raised; returns their keys. */
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

  get size(): number {
    return this.#writers.size;
  }
}
