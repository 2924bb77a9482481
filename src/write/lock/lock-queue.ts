// The lock queue: grants one lock at a time per key, fairly among the waiting clients.

export interface QueueEntry {
  /** Identifies the client. Grants alternate between clients, regardless of their number of entries. */
  client: string;
  /** Called when the lock is granted, with the time since its last release (ms). */
  grant: (freeMs: number) => void;
}

/** A queued entry. `round`: the round of the current holder, plus the earlier entries of the same client. */
interface QueuedEntry {
  entry: QueueEntry;
  round: number;
}

/** Limits of a queue, far above the concurrent requests of a client for one handle. */
const MAX_ENTRIES_OF_CLIENT = 128;
const MAX_ENTRIES = 1024;

/** Maximum number of stored release times. A read from before the last dropped release counts as outdated. */
const MAX_RELEASES = 4096;

/**
 * Queues fairly by rounds: a new entry follows the other entries of its round, and so precedes the later
 * rounds of clients with many entries.
 */
export class LockQueue {
  /** The first entry of each queue holds the lock. */
  readonly #queues = new Map<string, QueuedEntry[]>();
  /** Release times by key, oldest first (ms). */
  readonly #releases = new Map<string, number>();
  #releasedBefore = performance.now();

  /**
   * Adds an entry, and grants it the lock if the queue was empty. Returns false if the client or the queue is
   * at its limit.
   */
  enter(key: string, entry: QueueEntry): boolean {
    const queue = this.#queues.get(key);
    if (queue === undefined) {
      this.#queues.set(key, [{ entry, round: 0 }]);
      entry.grant(this.#freeMs(key));
      return true;
    }
    const own = queue.filter((other) => other.entry.client === entry.client);
    if (own.length >= MAX_ENTRIES_OF_CLIENT || queue.length >= MAX_ENTRIES) return false;
    const last = own.at(-1);
    const round = last === undefined ? (queue[0]?.round ?? 0) : last.round + 1;
    const behind = queue.findIndex((other) => other.round > round);
    queue.splice(behind === -1 ? queue.length : behind, 0, { entry, round });
    return true;
  }

  /** Removes an entry. If it holds the lock, the next entry is granted. */
  leave(key: string, leaving: QueueEntry): void {
    const queue = this.#queues.get(key);
    if (queue === undefined) return;
    const remaining = queue.filter(({ entry }) => entry !== leaving);
    const [next] = remaining;
    if (next === undefined) this.#release(key);
    else this.#queues.set(key, remaining);
    if (next !== undefined && next !== queue[0]) next.entry.grant(0);
  }

  #release(key: string): void {
    this.#queues.delete(key);
    this.#releases.delete(key);
    this.#releases.set(key, performance.now());
    if (this.#releases.size <= MAX_RELEASES) return;
    for (const [oldest, time] of this.#releases) {
      this.#releases.delete(oldest);
      this.#releasedBefore = time;
      return;
    }
  }

  #freeMs(key: string): number {
    return performance.now() - (this.#releases.get(key) ?? this.#releasedBefore);
  }
}
