// The queue for a lock: one grant at a time for each key, fair among the waiting clients.

export interface QueueEntry {
  /** Grants alternate between clients, however many entries each has. */
  client: string;
  /** Called when the lock is granted, with the time since it was last held (ms). */
  grant: (freeMs: number) => void;
}

/** `round`: the number of grants to its client before this one, counted from the current one. */
interface QueuedEntry {
  entry: QueueEntry;
  round: number;
}

/** Bound the memory of a queue; far above the requests that a client has in flight for one handle. */
const MAX_ENTRIES_OF_CLIENT = 128;
const MAX_ENTRIES = 1024;

/** Maximum number of release times kept; a read that began before the oldest of them counts as outdated. */
const MAX_RELEASES = 4096;

/**
 * Fair queueing by rounds: a new entry goes behind the entries of its round, and so before those
 * that a client with many entries has in later rounds.
 */
export class LockQueue {
  /** The first entry of each queue holds the lock. */
  readonly #queues = new Map<string, QueuedEntry[]>();
  /** Release times by key, oldest first (ms). */
  readonly #releases = new Map<string, number>();
  #releasedBefore = performance.now();

  /** @returns false when the client or the queue has reached its maximum of entries */
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

  /** Releases the lock of the entry, or removes it while it waits. */
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
