// Mirrors one prefix: repeatedly lists its handles and reads each into the cache.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Host } from '../../host.js';
import { type Clock, backoffMs } from '../../clock.js';
import type { Entry } from '../../cache/entry.js';
import { ServiceError } from '../../errors.js';
import { refOfKey } from '../../handle/handle.js';
import { type HandleList, ListRefused } from './names.js';

/** The last list, for clients. */
export interface MirroredList {
  handles: HandleList['handles'];
  isWhole: boolean;
  /** Time at which the list was requested (ms since the epoch). */
  listedAt: number;
  /** Whether it contains each acknowledged write, as far as this instance knows. */
  isCurrent: boolean;
}

/** Concurrent reads; the class `background` has at most half of the slots anyway. */
const MAX_IN_FLIGHT = 8;
/** Share of the time until the next list over which a walk is spread. */
const SPREAD = 0.9;
/** Share of handles that may be missing: above it, the log has a warning, and the next walk does not wait. */
const MAX_MISSING = 0.01;
const MISSING_REMEDY =
  'raise cache.maxBytes if handle_proxy_cache_evictions_total rises; else they were purged, cannot be read, or have a TTL of 0 or no public values';

/** Time to wait for the lease of Redis, because a list from before it is not served to clients (ms). */
const LEASE_STEP_MS = 100;
const MAX_LEASE_STEPS = 50;

const NONE: ReadonlySet<string> = new Set();

export class PrefixMirror {
  readonly #pause: ReturnType<typeof createPause>;
  /** Half of the interval: a visit may find an entry of this age, and the next visit is one cycle later. */
  readonly #cycleMs: number;
  #known: (HandleList & { listedAt: number; changes: number }) | undefined;
  /** Counts what may have changed the list, because the times of a write and a list can be equal. */
  #changes = 0;
  #walk: Walk | undefined;
  /** Time of the last complete list whose handles have all been read (ms since the epoch). */
  #copiedAt: number | undefined;
  #isSpread = false;
  /** Why the last list failed. */
  #reason: string | undefined;

  /** `intervalMs`: maximum age of a record. */
  constructor(
    private readonly host: Host,
    private readonly prefix: string,
    intervalMs: number,
    private readonly work: {
      /** Lists the handles; `previous` contains the keys of the last list. */
      readList: (previous: ReadonlySet<string>) => Promise<HandleList>;
      onUnexpected: (error: unknown) => void;
    },
  ) {
    this.#pause = createPause(host.clock);
    this.#cycleMs = intervalMs / 2;
  }

  /** Runs until `close`; an unexpected error costs a read or a list. */
  async run(): Promise<void> {
    while (!this.#pause.isClosed()) {
      try {
        await this.#runCycle();
      } catch (error) {
        this.work.onUnexpected(error);
        this.#pause.extend();
        await this.#pause.wait();
      }
    }
  }

  close(): void {
    this.#pause.close();
  }

  /** Returns the minimum TTL of "not found" for a key (ms); 0 if the list is incomplete or contains the key. */
  unknownTtlMs(key: string): number {
    const known = this.#known;
    if (known === undefined || !known.isWhole || known.names.has(key)) return 0;
    return Math.max(0, known.listedAt + this.#cycleMs - this.host.clock.now());
  }

  /** Called when a handle of the prefix has been written or purged, or when this instance may have missed that. */
  markChanged(): void {
    this.#changes++;
  }

  currentList(): MirroredList | undefined {
    if (this.#known === undefined) return undefined;
    const { handles, isWhole, listedAt, changes } = this.#known;
    // Without a lease, writes of other instances may be missing in a list of any age.
    const isCurrent = changes === this.#changes && this.host.cache.trustedSince() === 0;
    return { handles, isWhole, listedAt, isCurrent };
  }

  /** Returns the number of handles in each state: the size of the last list, and the counts since then. */
  handleCounts(): Record<'listed' | 'checked' | 'absent' | 'failed', number> {
    const counts = this.#walk?.counts ?? { checked: 0, absent: 0, failed: 0 };
    return { listed: this.#known?.names.size ?? 0, ...counts };
  }

  /** Returns the ages (s); Infinity before the first list or the first complete copy. */
  ages(): Record<'list' | 'records', number> {
    const ageOf = (at = -Infinity): number => (this.host.clock.now() - at) / 1000;
    return { list: ageOf(this.#known?.listedAt), records: ageOf(this.#copiedAt) };
  }

  async #runCycle(): Promise<void> {
    const { cache, clock } = this.host;
    const { now, monotonic } = clock;
    for (let step = 0; step < MAX_LEASE_STEPS && cache.trustedSince() > 0; step++)
      await this.#pause.sleep(LEASE_STEP_MS);
    const [listedAt, startedAt] = [now(), monotonic()];
    const previous = this.#known?.names ?? NONE;
    await this.#list(listedAt);
    if (this.#known === undefined) return this.#pause.wait();
    const walk = new Walk({
      names: this.#known.names,
      previous,
      listedAt,
      // The first copy is not spread, because an outage would lose handles that it has not read yet.
      durationMs: this.#isSpread ? this.#cycleMs * SPREAD : 0,
      minAgeMs: this.#cycleMs,
      entryOf: (key) => cache.memory.inspect(key)?.entry,
    });
    this.#walk = walk;
    await Promise.all(Array.from({ length: MAX_IN_FLIGHT }, () => this.#readInTurn(walk, startedAt)));
    if (this.#pause.isClosed()) return;
    this.#finish(walk, startedAt);
    await this.#pause.sleep(Math.max(0, startedAt + this.#cycleMs - monotonic()));
  }

  /** Reads the list; keeps the last list after a failure. */
  async #list(listedAt: number): Promise<void> {
    const changes = this.#changes;
    try {
      const list = await this.work.readList(this.#known?.names ?? NONE);
      this.#known = { ...list, listedAt, changes };
      this.#reason = undefined;
      this.#pause.reset();
    } catch (failure) {
      if (!(failure instanceof ServiceError || failure instanceof ListRefused)) throw failure;
      this.#pause.extend();
      // Clients get the refusal too.
      if (failure instanceof ListRefused) this.markChanged();
      const { message: reason } = failure;
      const advice = failure instanceof ListRefused ? { remedy: failure.remedy } : failure.diagnosis;
      if (reason !== this.#reason)
        this.host.log.warn({ prefix: this.prefix, reason, ...advice }, 'mirrored prefix not listed');
      this.#reason = reason;
    }
  }

  async #readInTurn(walk: Walk, startedAt: number): Promise<void> {
    const { now, monotonic } = this.host.clock;
    for (;;) {
      await this.#pause.wait();
      const step = walk.next(now(), monotonic() - startedAt);
      if (step.kind === 'end' || this.#pause.isClosed()) return;
      if (step.kind === 'visit') await this.#read(step, walk);
      else if (step.kind === 'wait') await this.#pause.sleep(step.ms);
      else await nextTurn();
    }
  }

  async #read(visit: Visit, walk: Walk): Promise<void> {
    const { key, newerThan } = visit;
    try {
      const read = await this.host.resolver.refresh(refOfKey(key), newerThan);
      // An older entry means that the server failed for a different caller.
      if (read.kind === 'entry' && read.entry.requestedAt > newerThan) {
        this.#pause.reset();
        // Counts as a use, because newcomers are evicted first.
        this.host.cache.memory.peek(key);
        return;
      }
    } catch (failure) {
      // Thrown, it would end the walk of this reader alone.
      if (!(failure instanceof ServiceError)) this.work.onUnexpected(failure);
      this.#pause.extend();
    }
    walk.retryLater(visit);
  }

  /** Ends a walk, and logs the first copy or missing records. */
  #finish({ counts: { checked, absent, failed } }: Walk, startedAt: number): void {
    const { log, clock } = this.host;
    const prefix = this.prefix;
    const isFirst = this.#copiedAt === undefined;
    if (!isFirst && absent > checked * MAX_MISSING)
      log.warn({ prefix, absent, failed, remedy: MISSING_REMEDY }, 'mirrored records missing in memory');
    this.#isSpread = failed <= checked * MAX_MISSING;
    if (failed > 0 || this.#known?.isWhole !== true) return;
    this.#copiedAt = this.#known.listedAt;
    const seconds = Math.round((clock.monotonic() - startedAt) / 1000);
    if (isFirst) log.info({ prefix, handles: checked, seconds }, 'mirrored prefix copied');
  }
}

// Decides which handle of a mirrored prefix to read next, and when after failures. The caller passes the time.

interface Visit {
  kind: 'visit';
  key: string;
  /** An entry is used only if it was requested after this time (ms since the epoch). */
  newerThan: number;
  /** Reads of this walk that failed before. */
  failures: number;
}

/** `rest`: let requests run, then ask for the next step. */
export type Step = Visit | { kind: 'wait'; ms: number } | { kind: 'rest' | 'end' };

export interface WalkPlan {
  names: ReadonlySet<string>;
  /** Names of the previous list. Those that are missing in `names` are visited too, because they may be deleted. */
  previous: ReadonlySet<string>;
  listedAt: number;
  /** Time over which the walk is spread (ms); 0 for the first copy. */
  durationMs: number;
  /** Minimum age of an entry that is read again (ms). */
  minAgeMs: number;
  entryOf: (key: string) => Entry | undefined;
}

/** Maximum names looked up per step, before the walk yields to requests. */
const LOOKS_PER_STEP = 200;
/** Time that a walk may be ahead of its schedule, so that short waits are combined (ms). */
const MAX_AHEAD_MS = 100;
const MAX_READS = 3;

/** One walk over the names of a list, in its order, so that all names are looked up at similar intervals. */
export class Walk {
  readonly #order: Iterator<string, undefined>;
  /** The previous names, of which those in the list are skipped. */
  readonly #previous: Iterator<string, undefined>;
  /** Handles whose read failed. They are read again at the end. */
  readonly #again = new Set<Visit>();
  /** Names checked, names without an entry in memory at that time, and names whose reads all failed. */
  readonly counts = { checked: 0, absent: 0, failed: 0 };

  constructor(private readonly plan: WalkPlan) {
    this.#order = plan.names.values();
    this.#previous = plan.previous.values();
  }

  /** `now`: wall clock. `elapsedMs`: time since the start of the walk. */
  next(now: number, elapsedMs: number): Step {
    const { names, durationMs, listedAt } = this.plan;
    for (let looks = 0; looks < LOOKS_PER_STEP; looks++) {
      const old = this.#previous.next();
      if (!old.done) {
        if (!names.has(old.value))
          return { kind: 'visit', key: old.value, newerThan: listedAt - 1, failures: 0 };
        continue;
      }
      const aheadMs = (this.counts.checked / names.size) * durationMs - elapsedMs;
      if (aheadMs > MAX_AHEAD_MS && this.counts.checked < names.size) return { kind: 'wait', ms: aheadMs };
      const { value: key } = this.#order.next();
      if (key === undefined) return this.#readAgain();
      const visit = this.#visitOf(key, now);
      if (visit !== undefined) return visit;
    }
    return { kind: 'rest' };
  }

  #visitOf(key: string, now: number): Visit | undefined {
    const newerThan = now - this.plan.minAgeMs;
    const entry = this.plan.entryOf(key);
    this.counts.checked++;
    if (entry === undefined) this.counts.absent++;
    return entry?.kind === 'found' && entry.requestedAt > newerThan
      ? undefined
      : { kind: 'visit', key, newerThan, failures: 0 };
  }

  #readAgain(): Step {
    const [visit] = this.#again;
    if (visit === undefined) return { kind: 'end' };
    this.#again.delete(visit);
    return visit;
  }

  retryLater(visit: Visit): void {
    const failures = visit.failures + 1;
    if (failures < MAX_READS) this.#again.add({ ...visit, failures });
    else this.counts.failed++;
  }
}

/** The pauses of a mirror: after failures of the server, and by its schedule. */
function createPause({ monotonic, after }: Clock) {
  const cancels = new Set<() => void>();
  let isClosed = false;
  let failures = 0;
  let until = -Infinity;
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const cancel = after(ms, () => {
        cancels.delete(cancel);
        resolve();
      });
      cancels.add(cancel);
    });
  return {
    sleep,
    isClosed: () => isClosed,
    /** Waits for the end of the pause after a failure. */
    async wait(): Promise<void> {
      while (!isClosed && monotonic() < until) await sleep(until - monotonic());
    },
    /** Begins a pause after a failure. Requests that fail during the pause do not extend it. */
    extend(): void {
      if (monotonic() < until) return;
      failures++;
      until = monotonic() + backoffMs(failures);
    },
    reset(): void {
      failures = 0;
    },
    /** Cancels all pauses, which stay pending; a timer of hours would keep the cache in memory. */
    close(): void {
      isClosed = true;
      for (const cancel of cancels) cancel();
    },
  };
}
