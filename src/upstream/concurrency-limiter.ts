// Limits concurrent requests to a Handle server, adapts the limit to latency, and
// shares slots fairly among callers.
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
  /** Current concurrency limit. */
  limit: number;
}

export const sumUsages = (usages: readonly LimiterUsage[]): LimiterUsage =>
  usages.reduce(
    (sum, { running, waiting, limit }) => ({
      running: sum.running + running,
      waiting: sum.waiting + waiting,
      limit: sum.limit + limit,
    }),
    { running: 0, waiting: 0, limit: 0 },
  );

/**
 * Aborts a request that has stalled for at least this time, freeing its slot;
 * returns false if it has not stalled.
 */
export type Preempt = (stalledMs: number) => boolean;

/**
 * Joins record key and login, so that requests with wrong passwords do not use up
 * the slots of a handle's owner.
 */
export const callerKey = (key: string, authorization = ''): string => `${key} ${authorization}`;

interface PlaceRequest {
  /** Record key, plus the login if there is one. */
  key?: string | undefined;
  caller?: Caller | undefined;
}

/** Divisors: one key gets at most an eighth of the slots and half of the queue. */
const PARTS = { slots: 8, queue: 2 };

/** Divisors: one client leaves a quarter of the slots free, background work leaves half. */
const RESERVED = { client: 4, background: 2 };

const UNKNOWN: Caller = { class: 'normal', client: undefined };

interface Waiting extends Waiter {
  resolve: () => void;
  reject: (error: ServiceError) => void;
  timer?: NodeJS.Timeout;
}

/**
 * Limits, queues and rejects requests. A request that cannot be served in time fails fast, so that a stale
 * record is served, or the caller retries later (RFC 9110 §15.6.4). Each `key` has a maximum share of slots
 * and queue, so a hanging record cannot block others. A request that finds the queue full displaces the last
 * request of the client with the most queued requests. cockatiel's bulkhead has no classes, clients, keys,
 * queue timeout or preemption.
 */
export class ConcurrencyLimiter {
  readonly #options: LimiterOptions;
  readonly #tuner: LimitTuner;
  readonly #running = new Tally();
  readonly #queued = new Tally();
  readonly #queue = new FairQueue<Waiting>(() => performance.now());
  readonly #preemptible = new Set<Preempt>();
  readonly #places: PlacesInUse = {
    mayRun: (waiter) => this.#mayRun(waiter),
    runningOf: (client) => this.#running.ofClient(client),
  };

  constructor(options: LimiterOptions) {
    const { concurrency, minConcurrency = concurrency } = options;
    this.#options = options;
    this.#tuner = new LimitTuner({ min: Math.min(minConcurrency, concurrency), max: concurrency });
  }

  /**
   * Acquires a slot and returns the function that releases it.
   *
   * @throws ServiceError OVERLOADED
   */
  async acquire({ key, caller = UNKNOWN }: PlaceRequest = {}): Promise<() => void> {
    const request = { key, caller };
    await this.#takeSlot(request);
    let isReleased = false;
    return () => {
      if (!isReleased) this.#releaseSlot(request);
      isReleased = true;
    };
  }

  /** Runs work in a slot; its latency adapts the limit. */
  async run<T>(work: () => Promise<T>, { key, caller = UNKNOWN }: PlaceRequest = {}): Promise<T> {
    const request = { key, caller };
    const waiting = this.#takeSlot(request);
    if (waiting !== undefined) await waiting;
    const startedAt = performance.now();
    try {
      const value = await work();
      this.#observe(performance.now() - startedAt);
      return value;
    } catch (error) {
      if (isOverload(error)) this.#observe(Infinity);
      throw error;
    } finally {
      this.#releaseSlot(request);
    }
  }

  /**
   * Registers a request that may be preempted while others wait; returns the function that unregisters it.
   */
  allowPreemption(preempt: Preempt): () => void {
    this.#preemptible.add(preempt);
    return () => this.#preemptible.delete(preempt);
  }

  usage(): LimiterUsage {
    return { running: this.#running.total, waiting: this.#queue.size, limit: this.#tuner.limit };
  }

  #mayRun({ key, caller }: Waiter): boolean {
    const { limit } = this.#tuner;
    const running = this.#running;
    const share = allBut(limit, RESERVED.client);
    // After the limit has fallen, a client's slots beyond its share do not count against other clients.
    if (running.total >= limit && running.within(share) >= limit) return false;
    if (running.total >= this.#options.concurrency) return false;
    if (running.ofKey(key) >= Math.ceil(limit / PARTS.slots)) return false;
    if (caller.class === 'background' && running.background >= allBut(limit, RESERVED.background))
      return false;
    return caller.client === undefined || running.ofClient(caller.client) < share;
  }

  /** Takes a slot; returns a promise if the request has to wait. */
  #takeSlot(request: Waiter): Promise<void> | undefined {
    if (!this.#mayRun(request)) return this.#queueUp(request);
    this.#running.change(request, 1);
    return undefined;
  }

  #releaseSlot(request: Waiter): void {
    this.#running.change(request, -1);
    this.#admitWaiting();
  }

  #queueUp(request: Waiter): Promise<void> {
    const { queue } = this.#options;
    if (this.#queued.ofKey(request.key) >= Math.ceil(queue / PARTS.queue)) throw this.#full();
    if (this.#queue.size >= queue) {
      const displaced = this.#queue.takeDisplaced(request);
      if (displaced === undefined) throw this.#full();
      this.#drop(displaced, `${queue} requests are waiting, most of them for this client`);
    }
    return this.#wait(request);
  }

  #wait({ key, caller }: Waiter): Promise<void> {
    const { queueTimeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { key, caller, resolve, reject };
      const expire = (): void => {
        this.#queue.remove(waiting);
        this.#drop(waiting, `no slot within ${queueTimeoutMs} ms`);
      };
      // Preempts before the timeout, so that this request still gets the freed slot.
      waiting.timer = setTimeout(() => {
        waiting.timer = setTimeout(expire, queueTimeoutMs / 4);
        this.#preemptOne(queueTimeoutMs / 2);
      }, 0.75 * queueTimeoutMs);
      this.#queued.change(waiting, 1);
      this.#queue.add(waiting);
    });
  }

  #leaveQueue(waiting: Waiting): void {
    clearTimeout(waiting.timer);
    this.#queued.change(waiting, -1);
  }

  #admit(waiting: Waiting): void {
    this.#leaveQueue(waiting);
    this.#running.change(waiting, 1);
    waiting.resolve();
  }

  #drop(waiting: Waiting, detail: string): void {
    this.#leaveQueue(waiting);
    waiting.reject(this.#reject(detail));
  }

  /** Admits queued requests while slots are free; the limit may have risen by several. */
  #admitWaiting(): void {
    while (this.#queue.size > 0 && this.#running.total < this.#options.concurrency) {
      const next = this.#queue.takeNext(this.#places);
      if (next === undefined) return;
      this.#admit(next);
    }
  }

  #observe(latencyMs: number): void {
    this.#tuner.observe(latencyMs, { running: this.#running.total, now: performance.now() });
  }

  #preemptOne(stalledMs: number): void {
    for (const preempt of this.#preemptible) if (preempt(stalledMs)) return;
  }

  #full(): ServiceError {
    return this.#reject(`${this.#queue.size} requests are waiting`);
  }

  #reject(detail: string): ServiceError {
    const { queueTimeoutMs, onRejected } = this.#options;
    onRejected?.();
    return new ServiceError('OVERLOADED', { detail, retryAfterMs: Math.max(queueTimeoutMs, 1000) });
  }
}

const isOverload = (error: unknown): boolean =>
  error instanceof ServiceError && (error.code === 'UPSTREAM_TIMEOUT' || error.code === 'UPSTREAM_BUSY');

/** Subtracts the reserved slots from the limit; returns at least 1. */
const allBut = (limit: number, parts: number): number => Math.max(1, limit - Math.floor(limit / parts));

/** Counts requests in total, in the background, per key and per client. */
class Tally {
  total = 0;
  background = 0;
  readonly #keys = new Map<string, number>();
  readonly #clients = new Map<string, number>();

  ofKey(key: string | undefined): number {
    return key === undefined ? 0 : (this.#keys.get(key) ?? 0);
  }

  ofClient(client: string | undefined): number {
    return client === undefined ? 0 : (this.#clients.get(client) ?? 0);
  }

  /** Returns the total, counting at most `share` requests per client. */
  within(share: number): number {
    let excess = 0;
    for (const count of this.#clients.values()) excess += Math.max(0, count - share);
    return this.total - excess;
  }

  change({ key, caller }: Waiter, by: 1 | -1): void {
    this.total += by;
    if (caller.class === 'background') this.background += by;
    if (key !== undefined) changeCount(this.#keys, key, by);
    if (caller.client !== undefined) changeCount(this.#clients, caller.client, by);
  }
}

function changeCount(counts: Map<string, number>, name: string, by: number): void {
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

/**
 * A server counts as busy above `factor` × quiet latency + `addedMs`; the addition
 * allows for noise on fast servers.
 */
const TOLERANCE = { factor: 2, addedMs: 10 };
const DECREASE = { gentle: 0.9, hard: 0.5 };

/**
 * Returns the limit after a sample. Requests beyond a server's capacity would queue inside it, where
 * their order cannot be controlled; the limit moves that queue to this process. The quiet latency is
 * re-measured whenever the limit is at its minimum, because a windowed minimum would rise with the
 * queue of a constantly busy server.
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
  readonly #bounds: LimitBounds;
  #state: AdaptiveLimit;
  #latenciesMs: number[] = [];
  #running = 0;
  #startedAt = -Infinity;

  constructor(bounds: LimitBounds) {
    this.#bounds = bounds;
    this.#state = { limit: bounds.max, quietMs: undefined };
  }

  get limit(): number {
    return this.#state.limit;
  }

  /** Records a completed request; `running` is the concurrency, including this request. */
  observe(latencyMs: number, { running, now }: { running: number; now: number }): void {
    if (this.#latenciesMs.length === 0) this.#startedAt = now - (latencyMs === Infinity ? 0 : latencyMs);
    this.#latenciesMs.push(latencyMs);
    this.#running = Math.max(this.#running, running);
    if (this.#latenciesMs.length < SAMPLE.requests || now - this.#startedAt < SAMPLE.durationMs) return;
    const sample = { latenciesMs: this.#latenciesMs, running: this.#running };
    this.#state = nextLimit(this.#state, sample, this.#bounds);
    this.#latenciesMs = [];
    this.#running = 0;
  }
}
