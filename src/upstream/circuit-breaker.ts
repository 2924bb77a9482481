// Circuit breaker for one server: opens when the server fails, but not when a few records fail.
import { ServiceError } from '../errors.js';
import { type FailureScope, scopeOf } from './failure.js';

export type BreakerState = 'closed' | 'half-open' | 'open';

interface BreakerOptions {
  /** Consecutive failures that open the breaker. */
  failures: number;
  openForMs: number;
}

/** An admitted request. */
interface Attempt {
  key: string;
  isTrial: boolean;
  successesBefore: number;
}

/** Record-level errors open the breaker at this multiple of `failures`. */
const RECORDS_PER_FAILURE = 10;

/** A server that succeeded within this time (ms) counts as working, even if some records fail. */
const WORKING_MS = 1000;

/**
 * Counts consecutive failures; a success resets the count. Every failed connection counts, because no record
 * can cause it. Any other failure counts once per record, and only if no success came after its request was
 * sent: a client that keeps requesting a few broken records must not open the breaker for all.
 */
export class CircuitBreaker {
  readonly #options: BreakerOptions;
  readonly #onStateChange: ((state: BreakerState) => void) | undefined;
  readonly #failures: ReturnType<typeof createFailureCount>;
  readonly #trials: ReturnType<typeof createTrials>;
  #state: BreakerState = 'closed';
  #openedBy: FailureScope = 'server';
  #successes = 0;
  #lastSuccessAt = -Infinity;
  #lastFailure: ServiceError | undefined;

  constructor(options: BreakerOptions, onStateChange?: (state: BreakerState) => void) {
    this.#options = options;
    this.#onStateChange = onStateChange;
    this.#failures = createFailureCount(options.failures);
    this.#trials = createTrials(options.failures, options.openForMs);
  }

  get state(): BreakerState {
    return this.#state;
  }

  /**
   * Admits a request for the record with this key. While the breaker is open, admits only a few requests, as
   * trials. Report each result with `succeeded` or `failed`; an unreported request counts as neither.
   *
   * @throws ServiceError UPSTREAM_BACKOFF while the breaker is open
   */
  begin(key: string): Attempt {
    const isTrial = this.#state !== 'closed';
    if (isTrial) this.#admitTrial(key);
    return { key, isTrial, successesBefore: this.#successes };
  }

  succeeded(): void {
    this.#successes++;
    this.#lastSuccessAt = performance.now();
    this.#failures.clear();
    this.#setState('closed');
  }

  failed({ key, isTrial, successesBefore }: Attempt, failure: ServiceError): void {
    // A request sent before the breaker opened must not override a later trial result.
    const isNews = this.#successes === successesBefore && isTrial === (this.#state !== 'closed');
    if (isNews) this.#count(key, failure);
  }

  #admitTrial(key: string): void {
    const retryAfterMs = this.#trials.admit(key, this.#failures.has(key));
    if (retryAfterMs > 0) {
      throw new ServiceError('UPSTREAM_BACKOFF', { cause: this.#lastFailure, retryAfterMs });
    }
    if (this.#trials.isFirst()) this.#setState('half-open');
  }

  #count(key: string, failure: ServiceError): void {
    this.#lastFailure = failure;
    const scope = scopeOf(failure);
    this.#failures.add(scope, key);
    if (this.#state !== 'closed') {
      this.#trialFailed(scope);
      return;
    }
    const broken = this.#failures.brokenScope();
    const isWorking = performance.now() - this.#lastSuccessAt < WORKING_MS;
    if (broken === 'connection' || (broken !== undefined && !isWorking)) this.#open(broken);
  }

  #trialFailed(scope: FailureScope): void {
    if (scope === 'connection') {
      this.#open(scope);
    } else if (scope === 'record' && this.#openedBy !== 'record') {
      // The server responds again: only this record fails.
      this.#failures.clearServer();
      this.#setState('closed');
    } else {
      this.#setState('open');
    }
  }

  #open(by: FailureScope): void {
    this.#openedBy = by;
    this.#trials.begin(by === 'connection' ? this.#options.openForMs : 0);
    this.#setState('open');
  }

  #setState(state: BreakerState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#onStateChange?.(state);
  }
}

/** Counts failures since the last success. */
function createFailureCount(failures: number) {
  const maxRecords = RECORDS_PER_FAILURE * failures;
  const keys = { server: new Set<string>(), record: new Set<string>() };
  let unconnected = 0;

  function clearServer(): void {
    unconnected = 0;
    keys.server.clear();
  }

  return {
    add(scope: FailureScope, key: string): void {
      if (scope === 'connection') unconnected++;
      else if (keys[scope].size < maxRecords) keys[scope].add(key);
    },
    has: (key: string): boolean => keys.server.has(key) || keys.record.has(key),
    /** Returns the scope with enough failures to open the breaker, if any. */
    brokenScope(): FailureScope | undefined {
      if (unconnected >= failures) return 'connection';
      if (unconnected + keys.server.size >= failures) return 'server';
      return keys.record.size >= maxRecords ? 'record' : undefined;
    },
    clearServer,
    clear(): void {
      // Skips empty sets, because clearing a set allocates a new table.
      if (unconnected > 0 || keys.server.size > 0) clearServer();
      if (keys.record.size > 0) keys.record.clear();
    },
  };
}

/**
 * Admits trial requests while the breaker is open: several records per period, at most one of which has
 * failed before. A client that requests broken records must not use up all trials.
 */
function createTrials(maxKeys: number, periodMs: number) {
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
    /** Returns 0 to admit the request, else the time until the next trial (ms). */
    admit(key: string, isFailing: boolean): number {
      const now = performance.now();
      if (now < startsAt) return startsAt - now;
      if (now >= startsAt + periodMs) begin(0);
      const isFull = isFailing ? hasFailing : keys.size - Number(hasFailing) >= maxKeys;
      if (isFull || keys.has(key)) return startsAt + periodMs - now;
      keys.add(key);
      hasFailing ||= isFailing;
      return 0;
    },
    isFirst: (): boolean => keys.size === 1,
  };
}
