// The queue for a lock: one turn at a time for each key, shared fairly among those who wait.

export interface QueueEntry {
  /** Whose place it is. A holder with many places gets one turn, then the others get theirs. */
  holder: string;
  /** Called when the turn has come, with the time for which nobody else had one (ms). */
  grant: (freeMs: number) => void;
}

/** `round`: how many turns its holder gets before this one, counted on from the current turn. */
interface QueuedEntry<P> {
  place: P;
  round: number;
}

/** The bounds are far above what a client has under way for one handle, and keep a queue from filling memory. */
const MAX_ENTRIES_OF_HOLDER = 128;
const MAX_ENTRIES = 1024;

/** Maximum number of release times; a read that began before the oldest of them counts as outdated. */
const MAX_RELEASES = 4096;

/**
 * Fair queueing by rounds: a new place goes behind the places of its own round, and so before those
 * that a holder with many places has in later rounds.
 */
export class LockQueue<P extends QueueEntry = QueueEntry> {
  /** The first of each has the turn. */
  readonly #queues = new Map<string, QueuedEntry<P>[]>();
  /** When a key was released, oldest first. */
  readonly #releases = new Map<string, number>();
  #releasedBefore = performance.now();

  /** Takes a place, or none when the holder or all together have as many as they may. */
  enter(key: string, place: P): boolean {
    const queue = this.#queues.get(key);
    if (queue === undefined) {
      this.#queues.set(key, [{ place, round: 0 }]);
      place.grant(this.#freeMs(key));
      return true;
    }
    const own = queue.filter(({ place: { holder } }) => holder === place.holder);
    if (own.length >= MAX_ENTRIES_OF_HOLDER || queue.length >= MAX_ENTRIES) return false;
    const last = own.at(-1);
    const round = last === undefined ? (queue[0]?.round ?? 0) : last.round + 1;
    const behind = queue.findIndex((other) => other.round > round);
    queue.splice(behind === -1 ? queue.length : behind, 0, { place, round });
    return true;
  }

  /** Ends the turn of these places of a key, or takes them back while they wait. */
  leave(key: string, isOver: (place: P) => boolean): void {
    const queue = this.#queues.get(key);
    if (queue === undefined) return;
    const left = queue.filter(({ place }) => !isOver(place));
    const [next] = left;
    if (next === undefined) this.#release(key);
    else this.#queues.set(key, left);
    if (next !== undefined && next !== queue[0]) next.place.grant(0);
  }

  /** The same for all keys. */
  leaveAll(isOver: (place: P) => boolean): void {
    for (const key of [...this.#queues.keys()]) this.leave(key, isOver);
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
