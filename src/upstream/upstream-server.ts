// One Handle server: anonymous reads of whole records, limited, guarded by a breaker, and paused on its request.
import { type ErrorCode, ServiceError } from '../errors.js';
import { handleToPath, recordKey } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import { type BreakerOptions, CircuitBreaker } from './circuit-breaker.js';
import type { Caller } from './caller.js';
import type { ConcurrencyLimiter } from './concurrency-limiter.js';
import { type UpstreamDispatcher, exchange, parseAddress, requestHeaders } from './exchange.js';
import { type TimeSlicer, runToEnd } from '../time-slicer.js';
import { type ReportHealth, watchHealth } from './server-health.js';
import { readOutcome } from './reply.js';
import { createRetryAfterPause } from './retry-after-pause.js';

/** One read that was sent, for the metrics. */
export interface UpstreamCall {
  /** Its address. */
  server: string;
  result: Outcome['kind'] | ErrorCode;
  durationMs: number;
  retried: boolean;
}

export interface ServerOptions {
  url: string;
  /** Our own name in `Via` (RFC 9110 §7.6.3): a request with it that comes back means a loop. */
  pseudonym: string;
  maxRecordBytes: number;
  caseSensitive: boolean;
  dispatcher: UpstreamDispatcher;
  breaker: BreakerOptions;
  limiter: ConcurrencyLimiter;
  /** Maximum pause that a Retry-After of the server gets. */
  maxPauseMs: number;
  onCall?: ((call: UpstreamCall) => void) | undefined;
  onHealth?: ReportHealth | undefined;
  /** For large records. */
  slicer: TimeSlicer;
  now: () => number;
}

/** Shorter responses are read in less than a millisecond. */
const SMALL_CHARS = 16 * 1024;
/** No client waits for a refresh. */
const clientIn = (caller: Caller | undefined): string => caller?.client ?? 'background';

interface ServerRead {
  handle: string;
  authoritative: boolean;
  caller?: Caller | undefined;
  /** For everything from the wait for a slot to the last byte, the retry included. */
  timeoutMs: number;
}

export interface UpstreamServer {
  /** @throws ServiceError UPSTREAM_* or OVERLOADED */
  read: (read: ServerRead) => Promise<Outcome>;
}

export function createServer(options: ServerOptions): UpstreamServer {
  const { pseudonym, limiter, caseSensitive, dispatcher, slicer, now, onCall } = options;
  const { origin, basePath } = parseAddress(options.url);
  const breaker = new CircuitBreaker(options.breaker);
  const pause = createRetryAfterPause({ maxPauseMs: options.maxPauseMs, now });
  const health = watchHealth({ now, report: options.onHealth ?? (() => undefined) });
  // None is of a caller: many callers share the response.
  const headersOfAll = requestHeaders({ pseudonym });

  async function send(
    key: string,
    { handle, authoritative, caller, timeoutMs }: ServerRead,
  ): Promise<Outcome> {
    // A pause may have begun during the wait for a slot.
    pause.assertOver();
    const attempt = breaker.begin(key);
    const path = `${basePath}/api/handles/${handleToPath(handle)}${authoritative ? '?auth=true' : ''}`;
    const startedAt = now();
    let retried = false;
    const onRetry = (): void => {
      retried = true;
    };
    const report = (result: UpstreamCall['result']): void => {
      onCall?.({ server: options.url, result, durationMs: now() - startedAt, retried });
    };
    try {
      const headers = caller?.via ? requestHeaders({ pseudonym, via: caller.via }) : headersOfAll;
      const request = { origin, method: 'GET' as const, path, headers };
      const limits = { timeoutMs, maxBodyBytes: options.maxRecordBytes, onRetry };
      const response = await exchange(dispatcher, request, limits);
      const { status, headers: received, body } = response;
      const pauseMs = pause.observe(response);
      const reading = readOutcome({ status, headers: received, body, handle, caseSensitive, pauseMs });
      const isSmall = body.length <= SMALL_CHARS;
      const outcome = isSmall ? runToEnd(reading) : await slicer.run(reading, { client: clientIn(caller) });
      report(outcome.kind);
      health.succeeded();
      breaker.succeeded();
      return outcome;
    } catch (error) {
      report(error instanceof ServiceError ? error.code : 'INTERNAL');
      if (error instanceof ServiceError) {
        health.failed(error);
        breaker.failed(attempt, error);
      }
      throw error;
    }
  }

  return {
    read(read) {
      const { handle, caller, timeoutMs: totalMs } = read;
      const key = recordKey(handle, caseSensitive);
      pause.assertOver();
      const deadline = performance.now() + totalMs;
      const sendInTime = (): Promise<Outcome> =>
        send(key, { ...read, timeoutMs: Math.max(1, deadline - performance.now()) });
      return limiter.run(sendInTime, { key, caller });
    },
  };
}
