// Runs long work in time slices, round-robin by client, so that no request blocks the event loop.

interface Job {
  /** Address or network that causes the work. Each gets an equal share for any number of jobs. */
  client: string;
  /** Aborted when the result is no longer needed. */
  signal?: AbortSignal | undefined;
  /**
   * Whether the job holds a record's text. It then precedes other jobs of the client, so that few records are in memory
   * at the same time.
   */
  isHolding?: boolean;
}

/** Work that may be interrupted at each `yield`; yields should be less than a millisecond apart. */
export type Steps<T> = Generator<void, T, void>;

/** Work in steps, or a function that is one step, so that simultaneous requests spread over several turns. */
export type Work<T> = Steps<T> | (() => T);

/** Runs short work without interruption. */
export function runToEnd<T>(work: Work<T>): T {
  if (typeof work === 'function') return work();
  let result = work.next();
  while (result.done !== true) result = work.next();
  return result.value;
}

/** Calls `work` with each item in a separate step; returns the results. */
export function* mapInSteps<T, R>(items: readonly T[], work: (item: T, at: number) => R): Steps<R[]> {
  const results: R[] = [];
  for (const item of items) {
    results.push(work(item, results.length));
    yield;
  }
  return results;
}

/** Returns the items of a list, or the characters of a text, in groups, so that a step has several. */
export const groupsOf = <T extends { length: number; slice: (start: number, end: number) => T }>(
  items: T,
  size: number,
): T[] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));

/** Short items in a step of a long list, which take a fraction of a millisecond. */
export const GROUP_SIZE = 500;

/** Calls `work` with groups of short items in separate steps; returns all elements of the results. */
export function* flatMapGroups<T, R>(
  items: readonly T[],
  work: (group: readonly T[]) => readonly R[],
  size = GROUP_SIZE,
): Steps<R[]> {
  const results: R[] = [];
  for (const group of groupsOf(items, size)) {
    results.push(...work(group));
    yield;
  }
  return results;
}

/** As `mapInSteps`, for work that is itself in steps. */
export function* mapLongInSteps<T, R>(items: readonly T[], work: (item: T) => Steps<R>): Steps<R[]> {
  const results: R[] = [];
  for (const item of items) {
    results.push(yield* work(item));
    yield;
  }
  return results;
}

/** Returns the items in order: sorts groups, then merges them, in steps. */
export function* sortInSteps<T>(items: readonly T[], compare: (one: T, other: T) => number): Steps<T[]> {
  if (items.length <= GROUP_SIZE) return items.toSorted(compare);
  const middle = items.length >> 1;
  const first = yield* sortInSteps(items.slice(0, middle), compare);
  yield;
  const second = yield* sortInSteps(items.slice(middle), compare);
  yield;
  return yield* mergeInSteps(first, second, compare);
}

function* mergeInSteps<T>(
  first: readonly T[],
  second: readonly T[],
  compare: (one: T, other: T) => number,
): Steps<T[]> {
  const merged: T[] = [];
  let [at, other] = [0, 0];
  while (at < first.length && other < second.length) {
    const isFirst = compare(first[at] as T, second[other] as T) <= 0;
    merged.push((isFirst ? first[at++] : second[other++]) as T);
    if (merged.length % GROUP_SIZE === 0) yield;
  }
  return merged.concat(first.slice(at), second.slice(other));
}

function* inOneStep<T>(work: () => T): Steps<T> {
  yield;
  return work();
}

interface SlicerDeps {
  /** Monotonic clock (ms). */
  monotonic: () => number;
  /** Schedules `run` for the next turn of the event loop, after pending I/O. */
  nextTurn: (run: () => void) => unknown;
  /** Bounds the records that wait by their largest length; `refuse` throws. Default: no bound. */
  records?: { maxChars: number; refuse: () => never };
}

/** Maximum work of all jobs per event-loop turn (ms); cache hits wait no longer than this. */
export const MAX_SLICE_MS = 5;

/**
 * Work (ms) for which one turn of the event loop is left to others: 16 turns after a full slice. Node accepts
 * one connection per turn and listener, so that without these turns a flood of slices would let in 200 new
 * connections a second. A turn without events takes about 15 µs: 5 % more CPU for the sliced work (measured).
 */
export const MS_PER_FREE_TURN = MAX_SLICE_MS / 16;

interface WaitingJob {
  signal: AbortSignal | undefined;
  /** Runs the job until the deadline (monotonic, ms). Returns whether it has ended. */
  runUntil: (deadlineMs: number) => boolean;
  abort: (reason: Error) => void;
}

/** A client's waiting jobs, first come, first served. */
interface JobQueue {
  holding: WaitingJob[];
  others: WaitingJob[];
}

export class TimeSlicer {
  /** Waiting jobs by client, in round-robin order: after its slice, a client moves to the end. */
  readonly #waiting = new Map<string, JobQueue>();
  /** Work (ms) for which no turn has been left to others yet. */
  #usedMs = 0;
  #isTurnDue = false;
  readonly #waitingChars: WaitingChars;

  constructor(private readonly deps: SlicerDeps) {
    this.#waitingChars = new WaitingChars(deps.records?.maxChars ?? Infinity);
  }

  /** Runs all steps; returns a promise if they exceed this turn, which rejects when `signal` is aborted. */
  run<T>(work: Work<T>, { client, signal, isHolding = false }: Job): T | Promise<T> {
    signal?.throwIfAborted();
    const steps = typeof work === 'function' ? inOneStep(work) : work;
    if (this.#usedMs < MAX_SLICE_MS && this.#waiting.size === 0) {
      const first = this.#charge((deadlineMs) => this.#stepUntil(steps, deadlineMs));
      if (first.done === true) return first.value;
    }
    return new Promise((resolve, reject) => {
      this.#enqueue(client, isHolding, {
        signal,
        runUntil: (deadlineMs) => {
          const result = this.#stepUntil(steps, deadlineMs);
          if (result.done === true) resolve(result.value);
          return result.done === true;
        },
        abort(reason) {
          reject(reason);
          steps.return(undefined as never);
        },
      });
    });
  }

  /** Does the same for work that holds a record of this length. @throws the error of `refuse` if too many wait */
  runHolding<T>(work: Work<T>, job: Job, chars: number): T | Promise<T> {
    const { client } = job;
    if (!this.#waitingChars.hasRoom(client, chars)) this.deps.records?.refuse();
    const result = this.run(work, { ...job, isHolding: true });
    if (!(result instanceof Promise)) return result;
    this.#waitingChars.add(client, chars);
    return result.finally(() => this.#waitingChars.add(client, -chars));
  }

  #enqueue(client: string, isHolding: boolean, job: WaitingJob): void {
    const queue = this.#waiting.get(client) ?? { holding: [], others: [] };
    this.#waiting.set(client, queue);
    queue[isHolding ? 'holding' : 'others'].push(job);
    this.#endTurnLater();
  }

  #endTurnLater(): void {
    if (this.#isTurnDue) return;
    this.#isTurnDue = true;
    this.deps.nextTurn(() => {
      this.#isTurnDue = false;
      this.#usedMs = Math.max(0, this.#usedMs - MS_PER_FREE_TURN);
      if (this.#usedMs === 0) this.#runWaiting();
      else this.#endTurnLater();
    });
  }

  #runWaiting(): void {
    while (this.#usedMs < MAX_SLICE_MS) {
      const next = this.#waiting.entries().next();
      if (next.done === true) return;
      const [client, queue] = next.value;
      this.#waiting.delete(client);
      const jobs = queue.holding.length > 0 ? queue.holding : queue.others;
      if (this.#charge((deadlineMs) => runJob(jobs[0], deadlineMs))) jobs.shift();
      if (queue.holding.length + queue.others.length > 0) this.#waiting.set(client, queue);
    }
    if (this.#waiting.size > 0) this.#endTurnLater();
  }

  /** Runs `work` within the rest of this slice, and charges its time to the slice. */
  #charge<R>(work: (deadlineMs: number) => R): R {
    const startedAt = this.deps.monotonic();
    this.#endTurnLater();
    try {
      return work(startedAt + MAX_SLICE_MS - this.#usedMs);
    } finally {
      this.#usedMs += this.deps.monotonic() - startedAt;
    }
  }

  /** Runs at least one step. */
  #stepUntil<T>(steps: Steps<T>, deadlineMs: number): IteratorResult<void, T> {
    let result = steps.next();
    while (result.done !== true && this.deps.monotonic() < deadlineMs) result = steps.next();
    return result;
  }
}

/** Runs a job until the deadline. Returns whether it has ended, aborted or failed. */
function runJob(job: WaitingJob | undefined, deadlineMs: number): boolean {
  if (job === undefined) return true;
  if (job.signal?.aborted === true) {
    job.abort(job.signal.reason as Error);
    return true;
  }
  try {
    return job.runUntil(deadlineMs);
  } catch (error) {
    job.abort(error as Error);
    return true;
  }
}

/** Maximum length of values that are processed without time slices, which takes less than a millisecond. */
export const SMALL_CHARS = 16 * 1024;

/**
 * Runs work on `chars` characters of records, which the request holds until it ends: on small ones directly, on large ones in
 * time slices. `Infinity`: work that reads its records itself, of any size. Work on one record is run by one call: each
 * call waits behind the client's other records, so that several for a record would hold all of them at a time.
 *
 * After the client disconnects, rejects with BAD_REQUEST, which is never sent.
 *
 * @throws ServiceError OVERLOADED
 */
export type RunSteps = <T>(work: Work<T>, chars: number) => T | Promise<T>;

/** Charges the processing time of a request, and the records held meanwhile, to its client. */
export class RequestWork {
  constructor(
    private readonly slicer: TimeSlicer,
    private readonly client: string,
    /** Returns the signal that aborts once the client has left. */
    private readonly leaving: () => AbortSignal,
  ) {}

  readonly run: RunSteps = (work, chars) => {
    if (chars <= SMALL_CHARS) return runToEnd(work);
    const job = { client: this.client, signal: this.leaving() };
    return chars === Infinity ? this.slicer.run(work, job) : this.slicer.runHolding(work, job, chars);
  };
}

/** Maximum length of the records that wait for a slice, in records of the largest size. */
const MAX_WAITING_RECORDS = { ofClient: 16, total: 64 };

/** The length of the records that wait for a slice, in total and by client. */
class WaitingChars {
  readonly #byClient = new Map<string, number>();
  #total = 0;

  constructor(private readonly maxRecordChars: number) {}

  /** Always has room for a client's only record. */
  hasRoom(client: string, chars: number): boolean {
    const ofClient = MAX_WAITING_RECORDS.ofClient * this.maxRecordChars;
    const total = MAX_WAITING_RECORDS.total * this.maxRecordChars;
    const before = this.#byClient.get(client) ?? 0;
    return before === 0 ? this.#total <= total : before + chars <= ofClient && this.#total + chars <= total;
  }

  add(client: string, chars: number): void {
    const now = (this.#byClient.get(client) ?? 0) + chars;
    this.#total += chars;
    if (now === 0) this.#byClient.delete(client);
    else this.#byClient.set(client, now);
  }
}
