// The health of one server: whether it gets a read now, by its Retry-After, its circuit breaker and failover.
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import { type FailureScope, scopeOf } from './failure.js';
import { type ResponseHead, headerOf, isTooBusy } from './response.js';

export type BreakerState = 'closed' | 'half-open' | 'open';

/** Receives the events of a server's health. */
export interface HealthReport {
  breakerChanged: (state: BreakerState) => void;
  succeeded: () => void;
  failed: (failure: ServiceError) => void;
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
 * A server is paused until the end of its Retry-After. Its breaker is closed, or open: then it gets only a few
 * requests, as trials. Failover avoids it after a failure.
 *
 * The breaker counts consecutive failures; a success resets the count. Every failed connection counts, because no
 * record can cause it. Any other failure counts once per record, and only if no success came after its request was
 * sent: a client that keeps requesting a few broken records must not open the breaker for all.
 */
export class ServerHealth {
  readonly #settings: ServerConfig;
  readonly #clock: Context['clock'];
  readonly #report: HealthReport | undefined;
  readonly #failures: ReturnType<typeof createFailureCount>;
  readonly #trials: ReturnType<typeof createTrials>;
  #pausedUntil: number | undefined;
  #avoidedUntil: number | undefined;
  #breaker: BreakerState = 'closed';
  #openedBy: FailureScope = 'server';
  #successes = 0;
  #succeededAt = -Infinity;
  #lastFailure: ServiceError | undefined;

  constructor(settings: ServerConfig, clock: Context['clock'], report?: HealthReport) {
    this.#settings = settings;
    this.#clock = clock;
    this.#report = report;
    this.#failures = createFailureCount(settings.breaker.failures);
    this.#trials = createTrials(settings.breaker);
  }

  /** @throws ServiceError UPSTREAM_BACKOFF during a pause */
  assertNotPaused(): void {
    if (this.#pausedUntil === undefined) return;
    const retryAfterMs = this.#pausedUntil - this.#clock.now();
    if (retryAfterMs <= 0) {
      this.#pausedUntil = undefined;
      return;
    }
    const diagnosis = { cause: 'the server requested a pause (Retry-After)' };
    throw new ServiceError('UPSTREAM_BACKOFF', { diagnosis, retryAfterMs });
  }

  /**
   * Admits a request for the record with this key. Report each result with `succeeded` or `failed`; an unreported
   * request counts as neither.
   *
   * @throws ServiceError UPSTREAM_BACKOFF for all but trials while the breaker is open
   */
  begin(key: string): Attempt {
    const isTrial = this.#breaker !== 'closed';
    if (isTrial) this.#admitTrial(key);
    return { key, isTrial, successesBefore: this.#successes };
  }

  /** Starts a pause if the response requests one, and returns its length (ms). */
  pauseIfBusy(response: ResponseHead): number | undefined {
    if (!isTooBusy(response.status)) return undefined;
    const requestedMs = parseRetryAfter(headerOf(response, 'retry-after'), this.#clock.wall());
    if (requestedMs === undefined) return undefined;
    const pauseMs = Math.min(requestedMs, this.#settings.maxRetryAfterMs);
    this.#pausedUntil = this.#clock.now() + pauseMs;
    return pauseMs;
  }

  succeeded(): void {
    this.#successes++;
    this.#avoidedUntil = undefined;
    this.#failures.clear();
    this.#setBreaker('closed');
    this.#report?.succeeded();
    this.#succeededAt = this.#clock.now();
  }

  failed({ key, isTrial, successesBefore }: Attempt, failure: ServiceError): void {
    this.#report?.failed(failure);
    // A request sent before the breaker opened must not override a later trial result.
    const isNews = this.#successes === successesBefore && isTrial === (this.#breaker !== 'closed');
    if (isNews) this.#count(key, failure);
  }

  /** Tries the server last in the next `periodMs`, until it succeeds. */
  avoid(periodMs: number): void {
    this.#avoidedUntil = this.#clock.now() + periodMs;
  }

  get isAvoided(): boolean {
    return this.#avoidedUntil !== undefined;
  }

  /**
   * Whether the server is tried first. When the time of an avoided server is over, one read tries it and starts the
   * time again, so that other reads do not wait for it.
   */
  mayBeFirst(periodMs: number): boolean {
    if (this.#avoidedUntil === undefined) return true;
    if (this.#clock.now() < this.#avoidedUntil) return false;
    this.avoid(periodMs);
    return true;
  }

  #admitTrial(key: string): void {
    const retryAfterMs = this.#trials.admit(key, this.#failures.has(key), this.#clock.now());
    if (retryAfterMs > 0) {
      throw new ServiceError('UPSTREAM_BACKOFF', { cause: this.#lastFailure, retryAfterMs });
    }
    if (this.#trials.isFirst()) this.#setBreaker('half-open');
  }

  #count(key: string, failure: ServiceError): void {
    this.#lastFailure = failure;
    const scope = scopeOf(failure);
    this.#failures.add(scope, key);
    if (this.#breaker !== 'closed') {
      this.#trialFailed(scope);
      return;
    }
    const broken = this.#failures.brokenScope();
    const isWorking = this.#clock.now() - this.#succeededAt < WORKING_MS;
    if (broken === 'connection' || (broken !== undefined && !isWorking)) this.#open(broken);
  }

  #trialFailed(scope: FailureScope): void {
    if (scope === 'connection') {
      this.#open(scope);
    } else if (scope === 'record' && this.#openedBy !== 'record') {
      // The server responds again: only this record fails.
      this.#failures.clearServer();
      this.#setBreaker('closed');
    } else {
      this.#setBreaker('open');
    }
  }

  #open(by: FailureScope): void {
    this.#openedBy = by;
    this.#trials.begin(this.#clock.now() + (by === 'connection' ? this.#settings.breaker.openForMs : 0));
    this.#setBreaker('open');
  }

  #setBreaker(state: BreakerState): void {
    if (this.#breaker === state) return;
    this.#breaker = state;
    this.#report?.breakerChanged(state);
  }
}

/** Returns servers in the order to try them: avoided ones last. */
export function inOrder<Server extends { health: ServerHealth }>(
  servers: readonly Server[],
  avoidMs: number,
): Server[] {
  const first = servers.find(({ health }) => health.mayBeFirst(avoidMs));
  const others = servers
    .filter((server) => server !== first)
    .sort((one, other) => Number(one.health.isAvoided) - Number(other.health.isAvoided));
  return first === undefined ? others : [first, ...others];
}

/** Parses Retry-After, in seconds or as a date, to milliseconds; undefined if it is invalid. */
function parseRetryAfter(header: string | undefined, wallTime: number): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse accepts far more than HTTP dates, so the day name is required.
  const until = /^[A-Z][a-z]+,/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(until) ? undefined : Math.max(0, until - wallTime);
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
function createTrials({ failures: maxKeys, openForMs: periodMs }: ServerConfig['breaker']) {
  const keys = new Set<string>();
  let hasFailing = false;
  let startsAt = 0;

  function begin(at: number): void {
    startsAt = at;
    keys.clear();
    hasFailing = false;
  }

  return {
    begin,
    /** Returns 0 to admit the request, else the time until the next trial (ms). */
    admit(key: string, isFailing: boolean, now: number): number {
      if (now < startsAt) return startsAt - now;
      if (now >= startsAt + periodMs) begin(now);
      const isFull = isFailing ? hasFailing : keys.size - Number(hasFailing) >= maxKeys;
      if (isFull || keys.has(key)) return startsAt + periodMs - now;
      keys.add(key);
      hasFailing ||= isFailing;
      return 0;
    },
    isFirst: (): boolean => keys.size === 1,
  };
}
