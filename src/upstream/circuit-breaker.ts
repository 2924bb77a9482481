// Circuit breaker of one server: opens when the server fails, not when a few of its records do.
import { ServiceError } from '../errors.js';
import { type FailureScope, scopeOf } from './failure.js';

export type BreakerState = 'closed' | 'half-open' | 'open';

export interface BreakerOptions {
  /** Failures in a row that open the breaker. */
  failures: number;
  openForMs: number;
  onBreaker?: ((state: BreakerState) => void) | undefined;
}

/** How many times `failures` different records have to be answered with an error. */
const RECORDS_PER_FAILURE = 10;

/** A server that gave a good answer within this time works (ms), whatever it says of some records. */
const WORKS_MS = 1000;

/**
 * Counts failures in a row, which a good answer ends. A failure before anything was sent counts each time, as no
 * record can cause it. Of any other, each record counts once, and only when no good answer came after its request
 * was sent: a client that asks for some broken records again and again must not shut out everybody.
 */
export class CircuitBreaker {
  readonly #options: BreakerOptions;
  readonly #failing: ReturnType<typeof createFailing>;
  readonly #trials: ReturnType<typeof createTrials>;
  #state: BreakerState = 'closed';
  #openedBy: FailureScope = 'server';
  #goodAnswers = 0;
  #lastGoodAt = -Infinity;
  #lastFailure: ServiceError | undefined;

  constructor(options: BreakerOptions) {
    this.#options = options;
    this.#failing = createFailing(options.failures);
    this.#trials = createTrials(options.failures, options.openForMs);
  }

  get state(): BreakerState {
    return this.#state;
  }

  /**
   * Runs a request about the record under a key. `isTrial`: the breaker is open, and this request is one of those
   * that find out whether the server is back.
   *
   * @throws ServiceError UPSTREAM_RESTING while the breaker is open
   */
  async run<T>(key: string, work: (isTrial: boolean) => Promise<T>): Promise<T> {
    const isTrial = this.#state !== 'closed';
    if (isTrial) this.#try(key);
    const goodBefore = this.#goodAnswers;
    try {
      const value = await work(isTrial);
      this.#succeeded();
      return value;
    } catch (error) {
      // A failure from before the breaker opened must not undo what a trial found since.
      const isNews = this.#goodAnswers === goodBefore && isTrial === (this.#state !== 'closed');
      if (error instanceof ServiceError && isNews) this.#failed(key, error);
      throw error;
    }
  }

  #try(key: string): void {
    const retryAfterMs = this.#trials.admit(key, this.#failing.has(key));
    if (retryAfterMs > 0) {
      throw new ServiceError('UPSTREAM_RESTING', { cause: this.#lastFailure, retryAfterMs });
    }
    if (this.#trials.isFirst()) this.#become('half-open');
  }

  #succeeded(): void {
    this.#goodAnswers++;
    this.#lastGoodAt = performance.now();
    this.#failing.clear();
    this.#become('closed');
  }

  #failed(key: string, failure: ServiceError): void {
    this.#lastFailure = failure;
    const scope = scopeOf(failure);
    this.#failing.add(scope, key);
    if (this.#state !== 'closed') {
      this.#trialFailed(scope);
      return;
    }
    const reason = this.#failing.reason();
    const isWorking = performance.now() - this.#lastGoodAt < WORKS_MS;
    if (reason === 'connection' || (reason !== undefined && !isWorking)) this.#open(reason);
  }

  #trialFailed(scope: FailureScope): void {
    if (scope === 'connection') {
      this.#open(scope);
    } else if (scope === 'record' && this.#openedBy !== 'record') {
      // The server answers again: what it says of this record is about this record.
      this.#failing.clearServer();
      this.#become('closed');
    } else {
      this.#become('open');
    }
  }

  #open(by: FailureScope): void {
    this.#openedBy = by;
    this.#trials.begin(by === 'connection' ? this.#options.openForMs : 0);
    this.#become('open');
  }

  #become(state: BreakerState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#options.onBreaker?.(state);
  }
}

/** Failures since the last good answer. */
function createFailing(failures: number) {
  const mostRecords = RECORDS_PER_FAILURE * failures;
  const keys = { server: new Set<string>(), record: new Set<string>() };
  let unconnected = 0;

  function clearServer(): void {
    unconnected = 0;
    keys.server.clear();
  }

  return {
    add(scope: FailureScope, key: string): void {
      if (scope === 'connection') unconnected++;
      else if (keys[scope].size < mostRecords) keys[scope].add(key);
    },
    has: (key: string): boolean => keys.server.has(key) || keys.record.has(key),
    /** Why the server counts as broken, if it does. */
    reason(): FailureScope | undefined {
      if (unconnected >= failures) return 'connection';
      if (unconnected + keys.server.size >= failures) return 'server';
      return keys.record.size >= mostRecords ? 'record' : undefined;
    },
    clearServer,
    clear(): void {
      clearServer();
      keys.record.clear();
    },
  };
}

/**
 * Requests let through while the breaker is open. In each period several records are tried, of those that have
 * failed already only one: whoever asks for broken records must not be the only one who is tried.
 */
function createTrials(mostKeys: number, periodMs: number) {
  const keys = new Set<string>();
  let hasFailing = false;
  let startsAt = 0;

  function begin(inMs: number): void {
    startsAt = performance.now() + inMs;
    keys.clear();
    hasFailing = false;
  }

  return {
    begin,
    /** Admits a request, or says when to ask again (ms). */
    admit(key: string, isFailing: boolean): number {
      const now = performance.now();
      if (now < startsAt) return startsAt - now;
      if (now >= startsAt + periodMs) begin(0);
      const isFull = isFailing ? hasFailing : keys.size - Number(hasFailing) >= mostKeys;
      if (isFull || keys.has(key)) return startsAt + periodMs - now;
      keys.add(key);
      hasFailing ||= isFailing;
      return 0;
    },
    isFirst: (): boolean => keys.size === 1,
  };
}
