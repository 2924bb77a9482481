// The promises: the newest acknowledged version of each record.

export interface Acknowledged {
  handle: string;
  version: number;
  /** The instance that acknowledged it. */
  instance: string;
  /** Virtual time. */
  at: number;
  /**
   * `confirmed`: every instance has acknowledged. `alone`: the writer alone was cut off from Redis, so that others may not know
   * it (`redis.disconnectedWrites: wait`). `cut off`: it was cut off too, but so were all others: they wait for its report.
   */
  by: 'confirmed' | 'alone' | 'cut off';
}

type Versions = Map<string, { version: number; at: number }[]>;

/** Older moments than this are not looked up. */
const KEPT_MS = 60_000;

export class History {
  readonly #everywhere: Versions = new Map();
  /** By instance: what it acknowledged while it was cut off. */
  readonly #here = new Map<string, Versions>();
  /** Of that, what the others wait for: they may not have a lease before it is reported. */
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
   * No older version may be answered there as fresh, by what was acknowledged up to that time: `awaitedAt` by instances that
   * have not reported it.
   */
  oldest(instance: string, handle: string, at = Infinity, awaitedAt = at): number {
    const here = this.#here.get(instance);
    const known = [this.#everywhere, ...(here ? [here] : [])].map((each) => oldestOf(each, handle, at));
    const awaited = [...this.#awaited.values()].map((each) => oldestOf(each, handle, awaitedAt));
    return Math.max(...known, ...awaited);
  }

  /** Nor be kept in Redis as fresh. */
  oldestInRedis(handle: string): number {
    return oldestOf(this.#everywhere, handle, Infinity);
  }

  /** The others wait for its report no longer. */
  isAlone(instance: string): void {
    this.#awaited.delete(instance);
  }

  /** What it has not reported is lost. */
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
