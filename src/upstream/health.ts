// The health of one server: whether it gets a read now, by its Retry-After, its circuit breaker and failover; logs changes.
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import type { ServerSettings } from './contract.js';
import { type FailureScope, type ServerKeys, codeOf, explainServerFailure, scopeOf } from './failure.js';
import { type ResponseHead, headerOf, isTooBusy } from './response.js';

type BreakerState = 'closed' | 'half-open' | 'open';

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
  readonly #report: ReturnType<typeof createHealthReport> | undefined;
  readonly #failures: ReturnType<typeof createFailureCount>;
  readonly #trials: ReturnType<typeof createTrials>;
  #pausedUntil: number | undefined;
  #avoidedUntil: number | undefined;
  #breaker: BreakerState = 'closed';
  #openedBy: FailureScope = 'server';
  #successes = 0;
  #succeededAt = -Infinity;
  #lastFailure: ServiceError | undefined;

  /** Without `keys`, changes are neither logged nor shown in metrics. */
  constructor(
    private readonly settings: ServerSettings,
    private readonly context: Context,
    keys: ServerKeys | undefined,
  ) {
    this.#report = keys && createHealthReport(settings.url, keys, context);
    this.#failures = createFailureCount(settings.breaker.failures);
    this.#trials = createTrials(settings.breaker);
  }

  /** @throws ServiceError UPSTREAM_BACKOFF during a pause */
  assertNotPaused(): void {
    if (this.#pausedUntil === undefined) return;
    const retryAfterMs = this.#pausedUntil - this.context.clock.now();
    if (retryAfterMs <= 0) {
      this.#pausedUntil = undefined;
      return;
    }
    const diagnosis = { cause: 'the server requested a pause (Retry-After)' };
    throw new ServiceError('UPSTREAM_BACKOFF', { diagnosis, retryAfterMs });
  }

  /**
   * While the breaker is open, no request waits for a slot: trials may hold all of them until their timeout.
   *
   * @throws ServiceError UPSTREAM_BACKOFF
   */
  assertClosed(): void {
    if (this.#breaker === 'closed') return;
    const retryAfterMs = this.settings.breaker.openForMs;
    throw new ServiceError('UPSTREAM_BACKOFF', { cause: this.#lastFailure, retryAfterMs });
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
    const requestedMs = parseRetryAfter(headerOf(response, 'retry-after'), this.context.clock.wall());
    if (requestedMs === undefined) return undefined;
    const pauseMs = Math.min(requestedMs, this.settings.maxRetryAfterMs);
    this.#pausedUntil = this.context.clock.now() + pauseMs;
    return pauseMs;
  }

  succeeded(): void {
    this.#successes++;
    this.#avoidedUntil = undefined;
    this.#failures.clear();
    this.#setBreaker('closed');
    this.#report?.succeeded();
    this.#succeededAt = this.context.clock.now();
  }

  failed({ key, isTrial, successesBefore }: Attempt, failure: ServiceError): void {
    this.#report?.failed(failure);
    // A request sent before the breaker opened must not override a later trial result.
    const isNews = this.#successes === successesBefore && isTrial === (this.#breaker !== 'closed');
    if (isNews) this.#count(key, failure);
  }

  /** Tries the server last for `upstream.retryAfter`, or until it succeeds. */
  avoid(): void {
    this.#avoidedUntil = this.context.clock.now() + this.settings.retryAfterMs;
  }

  get isAvoided(): boolean {
    return this.#avoidedUntil !== undefined;
  }

  /**
   * Whether the server is tried first. When the time of an avoided server is over, one read tries it and starts the
   * time again, so that other reads do not wait for it.
   */
  mayBeFirst(): boolean {
    if (this.#avoidedUntil === undefined) return true;
    if (this.context.clock.now() < this.#avoidedUntil) return false;
    this.avoid();
    return true;
  }

  #admitTrial(key: string): void {
    const retryAfterMs = this.#trials.admit(key, this.#failures.has(key), this.context.clock.now());
    if (retryAfterMs > 0)
      throw new ServiceError('UPSTREAM_BACKOFF', { cause: this.#lastFailure, retryAfterMs });
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
    const isWorking = this.context.clock.now() - this.#succeededAt < WORKING_MS;
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
    this.#trials.begin(
      this.context.clock.now() + (by === 'connection' ? this.settings.breaker.openForMs : 0),
    );
    this.#setBreaker('open');
  }

  #setBreaker(state: BreakerState): void {
    if (this.#breaker === state) return;
    this.#breaker = state;
    this.#report?.breakerChanged(state);
  }
}

/** Returns servers in the order to try them: avoided ones last. */
export function inOrder<Server extends { health: ServerHealth }>(servers: readonly Server[]): Server[] {
  const first = servers.find(({ health }) => health.mayBeFirst());
  const rankOf = (server: Server): number => (server === first ? 0 : server.health.isAvoided ? 2 : 1);
  return servers.toSorted((one, other) => rankOf(one) - rankOf(other));
}

/** Parses Retry-After, in seconds or as a date, to milliseconds; undefined if it is invalid. */
function parseRetryAfter(header: string | undefined, wallTime: number): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
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

/** Minimum interval between log lines for a server that alternates between success and failure. */
const MIN_INTERVAL_MS = 1000;
/** Interval between log lines for a server that keeps failing. */
const REPEAT_MS = 60_000;

/** Errors of requests that this process aborted at shutdown. */
const OWN_ENDS: readonly unknown[] = ['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'];

/** Creates the report of a server's health to the log and the metrics. */
function createHealthReport(server: string, keys: ServerKeys, { log, metrics, clock }: Context) {
  let reason: string | undefined;
  let loggedAt = -Infinity;
  /** Failures since the last log line. */
  let failures = 0;

  function change(to: string, failure?: ServiceError): void {
    const at = clock.now();
    if (at - loggedAt < (to === reason ? REPEAT_MS : MIN_INTERVAL_MS)) return;
    if (failure === undefined) {
      metrics.recent.setServerState(server, { state: 'working' });
      log.info({ server, failures }, 'server is working');
    } else {
      const diagnosis = { code: failure.code, ...explainServerFailure(failure, keys) };
      metrics.recent.setServerState(server, { state: 'failing', ...diagnosis });
      log.warn({ server, failures, ...diagnosis }, 'server is failing');
    }
    reason = to;
    loggedAt = at;
    failures = 0;
  }

  metrics.addServer(server);
  metrics.setBreakerState('closed', server);
  let breaker: BreakerState = 'closed';
  return {
    breakerChanged(state: BreakerState): void {
      metrics.setBreakerState(state, server);
      // A server that is down fails each trial, every few seconds.
      const isTrial = state === 'half-open' || breaker === 'half-open';
      const level = isTrial && state !== 'closed' ? 'debug' : 'warn';
      breaker = state;
      log[level]({ breaker: state, server }, 'circuit breaker state changed');
    },
    succeeded(): void {
      if (reason !== 'working') change('working');
    },
    failed(failure: ServiceError): void {
      const cause = codeOf(failure.cause);
      // A single failing record does not indicate the server's health.
      if (scopeOf(failure) === 'record' || OWN_ENDS.includes(cause)) return;
      failures++;
      change(`${failure.code} ${cause ?? ''}`, failure);
    },
  };
}
