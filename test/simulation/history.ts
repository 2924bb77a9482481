// The coherence guarantees: the newest acknowledged version of each record.

export interface Acknowledged {
  handle: string;
  version: number;
  instance: string;
  /** Virtual time of the acknowledgement. */
  at: number;
  /**
   * `confirmed`: every instance has acknowledged the write. `alone`: only the writer was cut off from Redis,
   * so other instances may not know the write (`redis.disconnectedWrites: wait`). `cut off`: all instances
   * were cut off, and the other instances wait for the writer's report.
   */
  by: 'confirmed' | 'alone' | 'cut off';
}

type Versions = Map<string, { version: number; at: number }[]>;

/** Acknowledgements are retained for this time, because queries concern only recent moments. */
const KEPT_MS = 60_000;

export class History {
  readonly #everywhere: Versions = new Map();
  /** Writes that an instance acknowledged while it was cut off, by instance. */
  readonly #here = new Map<string, Versions>();
  /** The subset of `#here` that blocks leases of other instances until the writer reports it. */
  readonly #awaited = new Map<string, Versions>();
  unconfirmedCount = 0;

  acknowledged(acknowledged: Acknowledged): void {
    const { instance, by } = acknowledged;
    if (by === 'confirmed') {
      add(this.#everywhere, acknowledged);
      return;
    }
    this.unconfirmedCount++;
    add(versionsOf(this.#here, instance), acknowledged);
    if (by === 'cut off') add(versionsOf(this.#awaited, instance), acknowledged);
  }

  /**
   * Returns the oldest version that this instance may serve as fresh, given all acknowledgements up to `at`.
   * Unreported acknowledgements count only up to `awaitedAt`.
   */
  oldest(instance: string, handle: string, at = Infinity, awaitedAt = at): number {
    const here = this.#here.get(instance);
    const known = [this.#everywhere, ...(here ? [here] : [])].map((each) => oldestOf(each, handle, at));
    const awaited = [...this.#awaited.values()].map((each) => oldestOf(each, handle, awaitedAt));
    return Math.max(...known, ...awaited);
  }

  /** Returns the oldest version that Redis may store as fresh. */
  oldestInRedis(handle: string): number {
    return oldestOf(this.#everywhere, handle, Infinity);
  }

  /** Records that other instances no longer wait for a report from this instance. */
  isAlone(instance: string): void {
    this.#awaited.delete(instance);
  }

  /** Discards the unreported acknowledgements of a killed instance. */
  killed(instance: string): void {
    this.#here.delete(instance);
    this.#awaited.delete(instance);
  }
}

function versionsOf(all: Map<string, Versions>, instance: string): Versions {
  const versions = all.get(instance) ?? (new Map() as Versions);
  all.set(instance, versions);
  return versions;
}

function add(versions: Versions, { handle, version, at }: Acknowledged): void {
  const known = versions.get(handle) ?? [];
  if (version <= (known.at(-1)?.version ?? 0)) return;
  const recent = known.filter((each, place) => (known[place + 1] ?? each).at > at - KEPT_MS);
  versions.set(handle, [...recent, { version, at }]);
}

const oldestOf = (versions: Versions, handle: string, at: number): number =>
  versions.get(handle)?.findLast((each) => each.at <= at)?.version ?? 0;
