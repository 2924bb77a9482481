// Limits concurrent requests to a Handle server, adapts the limit to latency, and shares slots fairly among callers.
import { systemClock } from '../clock.js';
import { ServiceError } from '../errors.js';
import type { Caller } from './caller.js';
import { FairQueue, type PlacesInUse, type Waiter } from './fair-queue.js';

interface LimiterOptions {
  /** Maximum concurrent requests. */
  concurrency: number;
  /** Minimum of the adaptive limit. Default: `concurrency`, which makes the limit fixed. */
  minConcurrency?: number | undefined;
  /** Maximum queued requests. */
  queue: number;
  /** Timeout in the queue (ms). */
  queueTimeoutMs: number;
  onRejected?: (() => void) | undefined;
}

export interface LimiterUsage {
  running: number;
  waiting: number;
  limit: number;
}

/** Maximum lists of handles in memory at the same time for each server: 8 MiB of JSON take some 40 MiB. */
const MAX_LISTS = 8;

/** Returns the options of a limiter for lists, which clients share like slots. */
export const limitLists = <Options extends LimiterOptions>(options: Options): Options => ({
  ...options,
  concurrency: MAX_LISTS,
  minConcurrency: MAX_LISTS,
});

/** Aborts a request that has stalled for at least this time, freeing its slot; returns false if it has not stalled. */
export type Preempt = (stalledMs: number) => boolean;

/** Joins record key and login, so that requests with wrong passwords do not use up the slots of a handle's owner. */
export const callerKey = (key: string, authorization = ''): string => `${key} ${authorization}`;

interface PlaceRequest {
  /** Record key, plus the login if there is one. */
  key?: string | undefined;
  caller?: Caller | undefined;
  /** Called before a request waits; throws an error to refuse it instead. */
  beforeWait?: (() => void) | undefined;
}

/** Maximum shares of the slots for one key, one client, and background work, and of the queue for one key. */
const SHARE = { key: 1 / 8, client: 3 / 4, background: 1 / 2, queue: 1 / 2 };

const UNKNOWN: Caller = { class: 'normal', client: undefined };

interface Waiting extends Waiter {
  resolve: () => void;
  reject: (error: ServiceError) => void;
  cancelTimer?: () => void;
}

/**
 * Limits, queues and rejects requests. A request that cannot be served in time fails fast, so that a stale record is
 * served, or the caller retries later (RFC 9110 §15.6.4). Each `key` has a maximum share of slots and queue, so a
 * hanging record cannot block others. A request that finds the queue full displaces the last request of the client
 * with the most queued requests. cockatiel's bulkhead has no classes, clients, keys, queue timeout or preemption.
 */
export class ConcurrencyLimiter {
  readonly #tuner: LimitTuner;
  #running = 0;
  #runningInBackground = 0;
  readonly #runningOfKey = new Map<string | undefined, number>();
  readonly #runningOfClient = new Map<string | undefined, number>();
  readonly #queuedOfKey = new Map<string | undefined, number>();
  readonly #queue = new FairQueue<Waiting>(() => performance.now());
  readonly #preemptible = new Set<Preempt>();
  readonly #places: PlacesInUse = {
    mayRun: (waiter) => this.#mayRun(waiter),
    runningOf: (client) => this.#runningOfClient.get(client) ?? 0,
  };

  constructor(private readonly options: LimiterOptions) {
    const { concurrency, minConcurrency = concurrency } = options;
    this.#tuner = new LimitTuner({ min: Math.min(minConcurrency, concurrency), max: concurrency });
  }

  /** Acquires a slot and returns the function that releases it. @throws ServiceError OVERLOADED */
  async acquire({ key, caller = UNKNOWN }: PlaceRequest = {}): Promise<() => void> {
    const request = { key, caller };
    if (!this.#takeSlot(request)) await this.#queueUp(request);
    let isReleased = false;
    return () => {
      if (!isReleased) this.#releaseSlot(request);
      isReleased = true;
    };
  }

  /** Runs work in a slot; its latency adapts the limit. `work` gets its start (monotonic, ms), and whether it waited. */
  async run<T>(
    work: (startedAt: number, hasWaited: boolean) => Promise<T>,
    { key, caller = UNKNOWN, beforeWait }: PlaceRequest = {},
  ): Promise<T> {
    const request = { key, caller };
    const hasWaited = !this.#takeSlot(request);
    if (hasWaited) {
      beforeWait?.();
      await this.#queueUp(request);
    }
    const startedAt = performance.now();
    try {
      const value = await work(startedAt, hasWaited);
      const endedAt = performance.now();
      this.#tuner.observe(endedAt - startedAt, this.#running, endedAt);
      return value;
    } catch (error) {
      if (isOverload(error)) this.#tuner.observe(Infinity, this.#running, performance.now());
      throw error;
    } finally {
      this.#releaseSlot(request);
    }
  }

  /** Registers a request that may be preempted while others wait; returns the function that unregisters it. */
  allowPreemption(preempt: Preempt): () => void {
    this.#preemptible.add(preempt);
    return () => this.#preemptible.delete(preempt);
  }

  usage(): LimiterUsage {
    return { running: this.#running, waiting: this.#queue.size, limit: this.#tuner.state.limit };
  }

  #mayRun({ key, caller }: Waiter): boolean {
    const { limit } = this.#tuner.state;
    const share = Math.ceil(SHARE.client * limit);
    if (this.#running >= this.options.concurrency) return false;
    if (this.#running >= limit && this.#runningWithin(share) >= limit) return false;
    if ((this.#runningOfKey.get(key) ?? 0) >= Math.ceil(SHARE.key * limit)) return false;
    const isBackground = caller.class === 'background';
    if (isBackground && this.#runningInBackground >= Math.ceil(SHARE.background * limit)) return false;
    return (this.#runningOfClient.get(caller.client) ?? 0) < share;
  }

  /** Counts running requests, at most `share` a client: its excess once the limit fell does not burden others. */
  #runningWithin(share: number): number {
    let excess = 0;
    for (const count of this.#runningOfClient.values()) excess += Math.max(0, count - share);
    return this.#running - excess;
  }

  /** Takes a slot; returns false if the request has to wait. */
  #takeSlot(request: Waiter): boolean {
    const mayRun = this.#mayRun(request);
    if (mayRun) this.#count(request, 1);
    return mayRun;
  }

  #releaseSlot(request: Waiter): void {
    this.#count(request, -1);
    // Several may be admitted, because the limit may have risen by several.
    while (this.#queue.size > 0 && this.#running < this.options.concurrency) {
      const next = this.#queue.takeNext(this.#places);
      if (next === undefined) return;
      this.#leaveQueue(next);
      this.#count(next, 1);
      next.resolve();
    }
  }

  #count({ key, caller }: Waiter, by: 1 | -1): void {
    this.#running += by;
    if (caller.class === 'background') this.#runningInBackground += by;
    changeCount(this.#runningOfKey, key, by);
    changeCount(this.#runningOfClient, caller.client, by);
  }

  /** Waits for a slot. @throws ServiceError OVERLOADED */
  #queueUp({ key, caller }: Waiter): Promise<void> {
    const { queue, queueTimeoutMs } = this.options;
    if ((this.#queuedOfKey.get(key) ?? 0) >= Math.ceil(SHARE.queue * queue)) throw this.#full();
    if (this.#queue.size >= queue) {
      const displaced = this.#queue.takeDisplaced({ key, caller });
      if (displaced === undefined) throw this.#full();
      this.#drop(displaced, `${queue} requests are waiting, most of them for this client`);
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { key, caller, resolve, reject };
      const expire = (): void => {
        this.#queue.remove(waiting);
        this.#drop(waiting, `no slot within ${queueTimeoutMs} ms`);
      };
      // Preempts before the timeout, so that this request still gets the freed slot.
      waiting.cancelTimer = systemClock.after(0.75 * queueTimeoutMs, () => {
        waiting.cancelTimer = systemClock.after(queueTimeoutMs / 4, expire);
        for (const preempt of this.#preemptible) if (preempt(queueTimeoutMs / 2)) return;
      });
      changeCount(this.#queuedOfKey, key, 1);
      this.#queue.add(waiting);
    });
  }

  #leaveQueue(waiting: Waiting): void {
    waiting.cancelTimer?.();
    changeCount(this.#queuedOfKey, waiting.key, -1);
  }

  #drop(waiting: Waiting, detail: string): void {
    this.#leaveQueue(waiting);
    waiting.reject(this.#reject(detail));
  }

  #full(): ServiceError {
    return this.#reject(`${this.#queue.size} requests are waiting`);
  }

  #reject(detail: string): ServiceError {
    const { queueTimeoutMs, onRejected } = this.options;
    onRejected?.();
    return new ServiceError('OVERLOADED', { detail, retryAfterMs: Math.max(queueTimeoutMs, 1000) });
  }
}

const isOverload = (error: unknown): boolean =>
  error instanceof ServiceError && (error.code === 'UPSTREAM_TIMEOUT' || error.code === 'UPSTREAM_BUSY');

/** Changes the count of a name; requests without a name are not counted. */
function changeCount(counts: Map<string | undefined, number>, name: string | undefined, by: 1 | -1): void {
  if (name === undefined) return;
  const count = (counts.get(name) ?? 0) + by;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}

interface LimitBounds {
  min: number;
  max: number;
}

export interface AdaptiveLimit {
  limit: number;
  /** Median latency without load (ms); undefined while none is known. */
  quietMs: number | undefined;
}

/** Observations since the last limit change. */
interface LimitSample {
  /** Infinity for a timeout, or for a rejection by a busy server. */
  latenciesMs: readonly number[];
  /** Peak concurrency during the sample. */
  running: number;
}

/** A server is busy above `factor` × quiet latency + `addedMs`, which allows for noise on fast servers. */
const TOLERANCE = { factor: 2, addedMs: 10 };
const DECREASE = { gentle: 0.9, hard: 0.5 };

/**
 * Returns the limit after a sample. Requests beyond a server's capacity would queue inside it, where their order
 * cannot be controlled; the limit moves that queue to this process. The quiet latency is re-measured whenever the
 * limit is at its minimum, because a windowed minimum would rise with the queue of a constantly busy server.
 */
export function nextLimit(
  state: AdaptiveLimit,
  sample: LimitSample,
  { min, max }: LimitBounds,
): AdaptiveLimit {
  const medianMs = medianOf(sample.latenciesMs);
  const quietMs = state.limit <= min ? medianMs : Math.min(state.quietMs ?? medianMs, medianMs);
  if (quietMs === Infinity) return { limit: min, quietMs: undefined };
  const busyMs = TOLERANCE.factor * quietMs + TOLERANCE.addedMs;
  if (medianMs > busyMs) {
    const factor = Math.max(DECREASE.hard, Math.min(DECREASE.gentle, busyMs / medianMs));
    return { limit: Math.max(min, Math.floor(state.limit * factor)), quietMs };
  }
  // An unreached limit is no evidence for a higher limit.
  if (sample.running < state.limit) return { limit: state.limit, quietMs };
  return { limit: Math.min(max, state.limit + Math.ceil(state.limit / 10)), quietMs };
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** Minimum size and duration (ms) of a sample. */
const SAMPLE = { requests: 10, durationMs: 100 };

/** Tracks a server's limit from its completed requests. */
class LimitTuner {
  state: AdaptiveLimit;
  #latenciesMs: number[] = [];
  #running = 0;
  #startedAt = -Infinity;

  constructor(private readonly bounds: LimitBounds) {
    this.state = { limit: bounds.max, quietMs: undefined };
  }

  /** Records a completed request; `running` is the concurrency, including this request. */
  observe(latencyMs: number, running: number, now: number): void {
    if (this.#latenciesMs.length === 0) this.#startedAt = now - (latencyMs === Infinity ? 0 : latencyMs);
    this.#latenciesMs.push(latencyMs);
    this.#running = Math.max(this.#running, running);
    if (this.#latenciesMs.length < SAMPLE.requests || now - this.#startedAt < SAMPLE.durationMs) return;
    const sample = { latenciesMs: this.#latenciesMs, running: this.#running };
    this.state = nextLimit(this.state, sample, this.bounds);
    this.#latenciesMs = [];
    this.#running = 0;
  }
}
