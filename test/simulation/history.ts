// What has been promised so far: the newest version of each record whose change was acknowledged.

export interface Acknowledged {
  handle: string;
  version: number;
  /** The instance that acknowledged it. */
  instance: string;
  /** Virtual time. */
  at: number;
  /** Whether it may rely on every other instance to know it. */
  isConfirmed: boolean;
}

type Versions = Map<string, { version: number; at: number }[]>;

/** Older moments than this are not asked about. */
const KEPT_MS = 60_000;

export class History {
  readonly #everywhere: Versions = new Map();
  /** By instance: what it acknowledged while it was cut off from Redis (`redis.writesWithout: wait`). */
  readonly #here = new Map<string, Versions>();
  unconfirmedCount = 0;

  acknowledged({ handle, version, instance, at, isConfirmed }: Acknowledged): void {
    if (!isConfirmed) this.unconfirmedCount++;
    const versions = isConfirmed ? this.#everywhere : this.#of(instance);
    const known = versions.get(handle) ?? [];
    if (version <= (known.at(-1)?.version ?? 0)) return;
    const recent = known.filter((each, place) => (known[place + 1] ?? each).at > at - KEPT_MS);
    versions.set(handle, [...recent, { version, at }]);
  }

  /** No older version may be answered there as fresh, by what was acknowledged up to that time. */
  oldest(instance: string, handle: string, at = Infinity): number {
    const here = this.#here.get(instance);
    return Math.max(oldestOf(this.#everywhere, handle, at), here ? oldestOf(here, handle, at) : 0);
  }

  /** Nor be kept in Redis as fresh. */
  oldestInRedis(handle: string): number {
    return oldestOf(this.#everywhere, handle, Infinity);
  }

  /** What it has not reported is lost. */
  killed(instance: string): void {
    this.#here.delete(instance);
  }

  #of(instance: string): Versions {
    const versions = this.#here.get(instance) ?? (new Map() as Versions);
    this.#here.set(instance, versions);
    return versions;
  }
}

const oldestOf = (versions: Versions, handle: string, at: number): number =>
  versions.get(handle)?.findLast((each) => each.at <= at)?.version ?? 0;
