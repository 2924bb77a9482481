// Decides which handle of a mirrored prefix to read next, and when after failures. The caller passes the time.
import type { Clock } from '../../cache/clock.js';
import type { Entry } from '../../cache/entry.js';

export interface Visit {
  key: string;
  /** An entry is used only if it was requested after this time (ms since the epoch). */
  newerThan: number;
  /** Reads of this walk that failed before. */
  failures: number;
}

/** `rest`: let requests run, then ask for the next step. */
export type Step = ({ kind: 'visit' } & Visit) | { kind: 'wait'; ms: number } | { kind: 'rest' | 'end' };

export interface WalkPlan {
  names: ReadonlySet<string>;
  /** Names of the previous list. Those that are missing in `names` are visited too, because they may be deleted. */
  previous: ReadonlySet<string>;
  /** Time at which the list was requested (ms since the epoch). */
  listedAt: number;
  /** Time over which the walk is spread (ms); 0 for the first copy. */
  durationMs: number;
  /** Minimum age of an entry that is read again (ms). */
  minAgeMs: number;
  /** Returns the entry in memory. */
  entryOf: (key: string) => Entry | undefined;
}

/** Maximum names looked up per step, before the walk yields to requests. */
const LOOKS_PER_STEP = 200;
/** Time that a walk may be ahead of its schedule, so that short waits are combined (ms). */
const MAX_AHEAD_MS = 100;
/** Maximum reads of a handle in one walk. */
const MAX_READS = 3;

/** One walk over the names of a list, in its order, so that all names are looked up at similar intervals. */
export class Walk {
  readonly #plan: WalkPlan;
  readonly #order: Iterator<string, undefined>;
  /** The previous names, of which those in the list are skipped. */
  readonly #previous: Iterator<string, undefined>;
  /** Handles whose read failed. They are read again at the end. */
  readonly #again = new Set<Visit>();
  #checked = 0;
  #absent = 0;
  #failed = 0;

  constructor(plan: WalkPlan) {
    this.#plan = plan;
    this.#order = plan.names.values();
    this.#previous = plan.previous.values();
  }

  /** Names checked, names without an entry in memory at that time, and names whose reads all failed. */
  get counts(): { checked: number; absent: number; failed: number } {
    return { checked: this.#checked, absent: this.#absent, failed: this.#failed };
  }

  /** `now`: wall clock. `elapsedMs`: time since the start of the walk. */
  next(now: number, elapsedMs: number): Step {
    const { names, durationMs, listedAt } = this.#plan;
    for (let looks = 0; looks < LOOKS_PER_STEP; looks++) {
      const old = this.#previous.next();
      if (!old.done) {
        if (!names.has(old.value))
          return { kind: 'visit', key: old.value, newerThan: listedAt - 1, failures: 0 };
        continue;
      }
      const aheadMs = (this.#checked / names.size) * durationMs - elapsedMs;
      if (aheadMs > MAX_AHEAD_MS && this.#checked < names.size) return { kind: 'wait', ms: aheadMs };
      const { value: key } = this.#order.next();
      if (key === undefined) return this.#readAgain();
      const visit = this.#visitOf(key, now);
      if (visit !== undefined) return { kind: 'visit', ...visit };
    }
    return { kind: 'rest' };
  }

  #visitOf(key: string, now: number): Visit | undefined {
    const newerThan = now - this.#plan.minAgeMs;
    const entry = this.#plan.entryOf(key);
    this.#checked++;
    if (entry === undefined) this.#absent++;
    return entry?.kind === 'found' && entry.requestedAt > newerThan
      ? undefined
      : { key, newerThan, failures: 0 };
  }

  #readAgain(): Step {
    const [visit] = this.#again;
    if (visit === undefined) return { kind: 'end' };
    this.#again.delete(visit);
    return { kind: 'visit', ...visit };
  }

  /** Moves a failed read to the end of the walk. */
  fail(visit: Visit): void {
    const failures = visit.failures + 1;
    if (failures < MAX_READS) this.#again.add({ ...visit, failures });
    else this.#failed++;
  }
}

/** Returns the pause after a number of consecutive failures (ms). */
export const pauseMsAfter = (failures: number): number => Math.min(1000 * 2 ** (failures - 1), 60_000);

/** The pauses of a mirror: after failures of the server, and by its schedule. */
export function createPause({ monotonic, after }: Clock) {
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
      until = monotonic() + pauseMsAfter(failures);
    },
    /** Makes the next pause short again. */
    reset(): void {
      failures = 0;
    },
    /** Cancels all pauses; their promises stay pending. */
    close(): void {
      isClosed = true;
      for (const cancel of cancels) cancel();
    },
  };
}
