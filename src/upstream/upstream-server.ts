// One server: anonymous reads of whole records, behind a limiter, a circuit breaker and Retry-After pauses.
import type { Config } from '../config/schema.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { CATALOGUE, type ErrorCode, ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import { type BreakerState, CircuitBreaker } from './circuit-breaker.js';
import type { Caller } from './caller.js';
import type { ConcurrencyLimiter } from './concurrency-limiter.js';
import { type UpstreamDispatcher, exchange, parseAddress, requestHeaders } from './exchange.js';
import type { TimeSlicer } from '../time-slicer.js';
import { readInSlices } from './reply.js';
import type { RecordSource, SourceRequest } from './source.js';
import { type ServerKeys, codeOf, explain, scopeOf } from './failure.js';
import { type UpstreamResponse, headerOf, isTooBusy } from './response.js';

export interface ServerSettings
  extends
    Pick<
      ServerConfig,
      'url' | 'prefixes' | 'existenceCheck' | 'breaker' | 'maxRetryAfterMs' | 'maxRecordBytes'
    >,
    Pick<Config['upstream'], 'caseSensitive'> {
  source: RecordSource;
}

export interface ServerParts {
  /** This proxy's name in `Via` (RFC 9110 §7.6.3), used to detect loops. */
  pseudonym: string;
  dispatcher: UpstreamDispatcher;
  limiter: ConcurrencyLimiter;
  /** Processes large records in time slices. */
  slicer: TimeSlicer;
  /** Undefined for a server that reports neither health nor breaker state. */
  keys: ServerKeys | undefined;
  /** Metric label; defaults to the address. */
  label?: string;
}

interface ServerRead {
  handle: HandleRef;
  authoritative: boolean;
  caller?: Caller | undefined;
  /** Timeout from queueing for a slot to the last byte, including the retry. */
  timeoutMs: number;
}

export interface UpstreamServer {
  /** @throws ServiceError UPSTREAM_* or OVERLOADED */
  read: (read: ServerRead) => Promise<Outcome>;
}

export function createServer(
  settings: ServerSettings,
  context: Context,
  { pseudonym, dispatcher, limiter, slicer, keys, label = settings.url }: ServerParts,
): UpstreamServer {
  const { url, caseSensitive, maxRecordBytes } = settings;
  const { now, wall } = context.clock;
  const { origin } = parseAddress(url);
  const protocol = settings.source.protocol(settings);
  const breaker = new CircuitBreaker(settings.breaker, keys && reportBreaker(url, context));
  const pause = createRetryAfterPause({ maxPauseMs: settings.maxRetryAfterMs, now, wall });
  const health = keys && watchHealth({ url, keys }, context);
  const report = createReport(label, context);
  // No caller header except `Via` is sent, because many callers share the response.
  const headersOfAll = requestHeaders({ pseudonym });

  /** Sends a read. `deadline`: monotonic (ms). */
  async function send(
    asked: SourceRequest,
    { handle, caller }: ServerRead,
    deadline: number,
  ): Promise<Outcome> {
    const { text, key } = handle;
    // A pause may have started while the request waited for a slot.
    pause.assertOver();
    const attempt = breaker.begin(key);
    const startedAt = now();
    try {
      const headers = caller?.via ? requestHeaders({ pseudonym, via: caller.via }) : headersOfAll;
      const request = { origin, ...asked, headers };
      const timeoutMs = Math.max(1, deadline - performance.now());
      const response = await exchange(dispatcher, request, { timeoutMs, maxBodyBytes: maxRecordBytes });
      const { status, headers: received, body } = response;
      const pauseMs = pause.observe(response);
      const reply = { status, headers: received, body, handle: text, caseSensitive, pauseMs };
      const reading = protocol.outcomeOf(reply);
      const read = readInSlices(slicer, reading, { chars: body.length, caller });
      const outcome = read instanceof Promise ? await read : read;
      report(outcome.kind, startedAt);
      health?.succeeded();
      breaker.succeeded();
      return outcome;
    } catch (error) {
      report(error instanceof ServiceError ? error.code : 'INTERNAL', startedAt);
      if (error instanceof ServiceError) {
        health?.failed(error);
        breaker.failed(attempt, error);
      }
      throw error;
    }
  }

  return {
    read(read) {
      const { handle, authoritative, caller, timeoutMs } = read;
      const asked = protocol.read(handle, authoritative);
      if ('kind' in asked) return Promise.resolve(asked);
      pause.assertOver();
      const deadline = performance.now() + timeoutMs;
      return limiter.run(() => send(asked, read, deadline), { key: handle.key, caller });
    },
  };
}

type CallResult = Outcome['kind'] | ErrorCode;

/** Creates the function that counts and traces an upstream read; `startedAt`: ms since the epoch. */
function createReport(server: string, { metrics, hooks: { spans }, clock: { now } }: Context) {
  return (result: CallResult, startedAt: number): void => {
    const durationMs = now() - startedAt;
    metrics.countUpstreamRequest({ server, outcome: result, ms: durationMs });
    for (const { addCall } of spans)
      addCall({ name: 'GET upstream', durationMs, result, isFailure: result in CATALOGUE });
  };
}

function reportBreaker(server: string, { log, metrics }: Context): (state: BreakerState) => void {
  metrics.addServer(server);
  metrics.setBreakerState('closed', server);
  return (state) => {
    metrics.setBreakerState(state, server);
    log.warn({ breaker: state, server }, 'circuit breaker state changed');
  };
}

interface PauseOptions {
  /** Cap on requested pauses, so that a server cannot disable itself for a day by mistake. */
  maxPauseMs: number;
  now: () => number;
  /** Wall clock, for a pause that ends at a date. */
  wall: () => number;
}

interface RetryAfterPause {
  /** Starts a pause if the response requests one, and returns its length (ms). */
  observe: (response: Omit<UpstreamResponse, 'body'>) => number | undefined;
  /** @throws ServiceError UPSTREAM_BACKOFF during a pause */
  assertOver: () => void;
}

function createRetryAfterPause({ maxPauseMs, now, wall }: PauseOptions): RetryAfterPause {
  let endsAt = 0;
  return {
    observe(response) {
      if (!isTooBusy(response.status)) return undefined;
      const requestedMs = parseRetryAfter(headerOf(response, 'retry-after'), wall());
      if (requestedMs === undefined) return undefined;
      const pauseMs = Math.min(requestedMs, maxPauseMs);
      endsAt = now() + pauseMs;
      return pauseMs;
    },
    assertOver() {
      const leftMs = endsAt - now();
      if (leftMs <= 0) return;
      const diagnosis = { cause: 'the server requested a pause (Retry-After)' };
      throw new ServiceError('UPSTREAM_BACKOFF', { diagnosis, retryAfterMs: leftMs });
    },
  };
}

/** Parses Retry-After, in seconds or as a date, to milliseconds; undefined if it is invalid. */
function parseRetryAfter(header: string | undefined, wallTime: number): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse accepts far more than HTTP dates, so the day name is required.
  const until = /^[A-Z][a-z]+,/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(until) ? undefined : Math.max(0, until - wallTime);
}

interface HealthWatch {
  succeeded: () => void;
  failed: (failure: ServiceError) => void;
}

/** Minimum interval between log lines for a server that alternates between success and failure. */
const MIN_INTERVAL_MS = 1000;

/** Errors of requests that this process aborted at shutdown. */
const OWN_ENDS: readonly unknown[] = ['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'];

interface WatchedServer {
  url: string;
  keys: ServerKeys;
}

function watchHealth({ url: server, keys }: WatchedServer, context: Context): HealthWatch {
  const { log, metrics, clock } = context;
  let reason: string | undefined;
  let loggedAt = -Infinity;
  /** Failures since the last log line. */
  let failures = 0;

  function change(to: string, failure?: ServiceError): void {
    const at = clock.now();
    if (to === reason || at - loggedAt < MIN_INTERVAL_MS) return;
    if (failure === undefined) {
      metrics.recent.setServerState(server, { state: 'working' });
      log.info({ server, failures }, 'server is working');
    } else {
      const diagnosis = { code: failure.code, ...explain(failure, keys) };
      metrics.recent.setServerState(server, { state: 'failing', ...diagnosis });
      log.warn({ server, failures, ...diagnosis }, 'server is failing');
    }
    reason = to;
    loggedAt = at;
    failures = 0;
  }

  return {
    succeeded() {
      if (reason !== 'working') change('working');
    },
    failed(failure) {
      const cause = codeOf(failure.cause);
      // A single failing record does not indicate the server's health.
      if (scopeOf(failure) === 'record' || OWN_ENDS.includes(cause)) return;
      failures++;
      change(`${failure.code} ${cause ?? ''}`, failure);
    },
  };
}
