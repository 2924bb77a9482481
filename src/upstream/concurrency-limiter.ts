// Concurrency limit of the requests to a Handle server, with a bounded queue that is fair among keys.
import { ServiceError } from '../errors.js';

export interface LimiterOptions {
  /** Maximum requests at a time. */
  concurrency: number;
  /** Maximum requests that wait. */
  queue: number;
  /** Timeout for the wait (ms). */
  waitMs: number;
  onRejected?: (() => void) | undefined;
}

export interface LimiterUsage {
  running: number;
  waiting: number;
}

export const sumUsages = (usages: readonly LimiterUsage[]): LimiterUsage =>
  usages.reduce(
    (sum, { running, waiting }) => ({ running: sum.running + running, waiting: sum.waiting + waiting }),
    { running: 0, waiting: 0 },
  );

/** Ends a request that has been stalled for at least this time, so that its slot is freed; false when it is not stalled. */
export type Preempt = (stalledMs: number) => boolean;

/** Each login has a part of its own: wrong passwords must not take the slots of the owner of a handle. */
export const callerKey = (key: string, authorization = ''): string => `${key} ${authorization}`;

/** The part of one key: an eighth of the slots, and half of the queue. */
const PARTS = { slots: 8, queue: 2 };

interface Waiting {
  key: string | undefined;
  admit: () => void;
}

/**
 * An unbounded queue would only make every request late: one that cannot be served in time fails at once, so that a
 * stale record can stand in, or the caller can come back later (RFC 9110 §15.6.4). One `key` gets only a part of the
 * slots and of the queue: a record for which the server hangs takes no more, however often it is requested. Not
 * cockatiel's bulkhead: its queue has neither keys, nor a timeout, nor requests that can be ended for others.
 */
export class ConcurrencyLimiter {
  readonly #options: LimiterOptions;
  readonly #slots: ReturnType<typeof createShares>;
  readonly #places: ReturnType<typeof createShares>;
  readonly #waiting = new Set<Waiting>();
  readonly #preemptible = new Set<Preempt>();

  constructor(options: LimiterOptions) {
    this.#options = options;
    this.#slots = createShares(options.concurrency, PARTS.slots);
    this.#places = createShares(options.queue, PARTS.queue);
  }

  /**
   * Waits for a slot and returns the function that releases it.
   *
   * @throws ServiceError OVERLOADED
   */
  async acquire(key?: string): Promise<() => void> {
    if (!this.#slots.isFullFor(key)) return this.#takeSlot(key);
    if (this.#places.isFullFor(key)) throw this.#reject(`${this.#waiting.size} requests are waiting`);
    return this.#wait(key);
  }

  /** Runs work in a slot. */
  async run<T>(work: () => Promise<T>, key?: string): Promise<T> {
    const release = this.#slots.isFullFor(key) ? await this.acquire(key) : this.#takeSlot(key);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Registers a request that may be ended when others wait; returns the function that unregisters it. */
  allowPreemption(preempt: Preempt): () => void {
    this.#preemptible.add(preempt);
    return () => this.#preemptible.delete(preempt);
  }

  usage(): LimiterUsage {
    return { running: this.#slots.taken(), waiting: this.#waiting.size };
  }

  #takeSlot(key?: string): () => void {
    this.#slots.take(key);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#slots.free(key);
      this.#admitNext();
    };
  }

  #wait(key?: string): Promise<() => void> {
    const { waitMs } = this.#options;
    this.#places.take(key);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(preemption);
        clearTimeout(timeout);
        this.#waiting.delete(entry);
        this.#places.free(key);
      };
      const admit = (): void => {
        leave();
        resolve(this.#takeSlot(key));
      };
      const entry = { key, admit };
      this.#waiting.add(entry);
      // Before the timeout, so that this request still gets the slot.
      const preemption = setTimeout(() => {
        this.#preemptOne(waitMs / 2);
      }, 0.75 * waitMs);
      const timeout = setTimeout(() => {
        leave();
        reject(this.#reject(`no slot within ${waitMs} ms`));
      }, waitMs);
    });
  }

  /** The first that may have a slot. */
  #admitNext(): void {
    for (const next of this.#waiting) {
      if (this.#slots.isFullFor(next.key)) continue;
      next.admit();
      return;
    }
  }

  #preemptOne(stalledMs: number): void {
    for (const preempt of this.#preemptible) if (preempt(stalledMs)) return;
  }

  #reject(detail: string): ServiceError {
    const { waitMs, onRejected } = this.#options;
    onRejected?.();
    return new ServiceError('OVERLOADED', { detail, retryAfterMs: Math.max(waitMs, 1000) });
  }
}

/** Counts what is taken, in all and by key. A key that is undefined has no share of its own. */
function createShares(max: number, parts: number) {
  const maxOfKey = Math.ceil(max / parts);
  const takenBy = new Map<string, number>();
  let taken = 0;

  function change(key: string | undefined, by: number): void {
    taken += by;
    if (key === undefined) return;
    const count = (takenBy.get(key) ?? 0) + by;
    if (count > 0) takenBy.set(key, count);
    else takenBy.delete(key);
  }

  return {
    taken: () => taken,
    isFullFor: (key?: string): boolean =>
      taken >= max || (key !== undefined && (takenBy.get(key) ?? 0) >= maxOfKey),
    take(key?: string): void {
      change(key, 1);
    },
    free(key?: string): void {
      change(key, -1);
    },
  };
}
