// What has been promised so far: the newest version of each record whose change was acknowledged.

export interface Acknowledged {
  handle: string;
  version: number;
  /** The instance that acknowledged it. */
  instance: string;
  /** Virtual time. */
  at: number;
  /**
   * `confirmed`: every instance has been told. `alone`: the writer alone was cut off from Redis, so that others may not know
   * it (`redis.writesWithout: wait`). `cut off`: it was cut off too, but so were all others: they wait for its report.
   */
  by: 'confirmed' | 'alone' | 'cut off';
}

type Versions = Map<string, { version: number; at: number }[]>;

/** Older moments than this are not asked about. */
const KEPT_MS = 60_000;

export class History {
  readonly #everywhere: Versions = new Map();
  /** By instance: what it acknowledged while it was cut off. */
  readonly #here = new Map<string, Versions>();
  /** Those of them that were never alone: the others may not have a lease without their report. */
  readonly #reporting = new Set<string>();
  unconfirmedCount = 0;

  acknowledged({ handle, version, instance, at, by }: Acknowledged): void {
    if (by !== 'confirmed') this.unconfirmedCount++;
    if (by === 'cut off') this.#reporting.add(instance);
    const versions = by === 'confirmed' ? this.#everywhere : this.#of(instance);
    const known = versions.get(handle) ?? [];
    if (version <= (known.at(-1)?.version ?? 0)) return;
    const recent = known.filter((each, place) => (known[place + 1] ?? each).at > at - KEPT_MS);
    versions.set(handle, [...recent, { version, at }]);
  }

  /** No older version may be answered there as fresh, by what was acknowledged up to that time. */
  oldest(instance: string, handle: string, at = Infinity): number {
    let oldest = oldestOf(this.#everywhere, handle, at);
    for (const [writer, versions] of this.#here)
      if (writer === instance || this.#reporting.has(writer))
        oldest = Math.max(oldest, oldestOf(versions, handle, at));
    return oldest;
  }

  /** Nor be kept in Redis as fresh. */
  oldestInRedis(handle: string): number {
    return oldestOf(this.#everywhere, handle, Infinity);
  }

  /** The others have not waited for its report any longer. */
  isAlone(instance: string): void {
    this.#reporting.delete(instance);
  }

  /** What it has not reported is lost. */
  killed(instance: string): void {
    this.#here.delete(instance);
    this.#reporting.delete(instance);
  }

  #of(instance: string): Versions {
    const versions = this.#here.get(instance) ?? (new Map() as Versions);
    this.#here.set(instance, versions);
    return versions;
  }
}

const oldestOf = (versions: Versions, handle: string, at: number): number =>
  versions.get(handle)?.findLast((each) => each.at <= at)?.version ?? 0;
