// One Handle server: anonymous reads of whole records, limited, guarded by a breaker, and paused on its request.
import type { Config } from '../config/schema.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { CATALOGUE, type ErrorCode, ServiceError } from '../errors.js';
import { handleToPath, recordKey } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import { type BreakerState, CircuitBreaker } from './circuit-breaker.js';
import type { Caller } from './caller.js';
import type { ConcurrencyLimiter } from './concurrency-limiter.js';
import { type UpstreamDispatcher, exchange, parseAddress, requestHeaders } from './exchange.js';
import type { TimeSlicer } from '../time-slicer.js';
import { watchHealth } from './server-health.js';
import { readInSlices, readOutcome } from './reply.js';
import { createRetryAfterPause } from './retry-after-pause.js';
import type { ServerKeys } from './server-keys.js';

export interface ServerSettings
  extends
    Pick<ServerConfig, 'url' | 'breaker' | 'maxRestMs' | 'maxRecordBytes'>,
    Pick<Config['upstream'], 'caseSensitive'> {}

export interface ServerParts {
  /** Our own name in `Via` (RFC 9110 §7.6.3): a request with it that comes back means a loop. */
  pseudonym: string;
  dispatcher: UpstreamDispatcher;
  limiter: ConcurrencyLimiter;
  /** For large records. */
  slicer: TimeSlicer;
  /** Undefined for a server that only a referral names: its health and its breaker are not reported. */
  keys: ServerKeys | undefined;
}

/** In the metrics they are one server: strangers' prefix records do not decide how many series there are. */
export const REFERRED = 'referred';

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

export function createServer(
  settings: ServerSettings,
  context: Context,
  { pseudonym, dispatcher, limiter, slicer, keys }: ServerParts,
): UpstreamServer {
  const { url, caseSensitive, maxRecordBytes } = settings;
  const { now } = context.clock;
  const { origin, basePath } = parseAddress(url);
  const breaker = new CircuitBreaker(settings.breaker, keys && reportBreaker(url, context));
  const pause = createRetryAfterPause({ maxPauseMs: settings.maxRestMs, now });
  const health = keys && watchHealth({ url, keys }, context);
  const server = keys === undefined ? REFERRED : url;
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
    const report = (result: CallResult): void => {
      reportCall({ server, result, durationMs: now() - startedAt }, context);
    };
    try {
      const headers = caller?.via ? requestHeaders({ pseudonym, via: caller.via }) : headersOfAll;
      const request = { origin, method: 'GET' as const, path, headers };
      const response = await exchange(dispatcher, request, { timeoutMs, maxBodyBytes: maxRecordBytes });
      const { status, headers: received, body } = response;
      const pauseMs = pause.observe(response);
      const reading = readOutcome({ status, headers: received, body, handle, caseSensitive, pauseMs });
      const read = readInSlices(slicer, reading, { chars: body.length, caller });
      const outcome = read instanceof Promise ? await read : read;
      report(outcome.kind);
      health?.succeeded();
      breaker.succeeded();
      return outcome;
    } catch (error) {
      report(error instanceof ServiceError ? error.code : 'INTERNAL');
      if (error instanceof ServiceError) {
        health?.failed(error);
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

interface UpstreamCall {
  server: string;
  result: CallResult;
  durationMs: number;
}

type CallResult = Outcome['kind'] | ErrorCode;

/** Counts and traces a read that was sent. */
function reportCall({ server, result, durationMs }: UpstreamCall, { metrics, tracer }: Context): void {
  metrics.countUpstreamRequest({ server, outcome: result, ms: durationMs });
  tracer?.addCall({ name: 'GET upstream', durationMs, result, isFailure: result in CATALOGUE });
}

function reportBreaker(server: string, { log, metrics }: Context): (state: BreakerState) => void {
  metrics.addServer(server);
  metrics.setBreakerState('closed', server);
  return (state) => {
    metrics.setBreakerState(state, server);
    log.warn({ breaker: state, server }, 'circuit breaker state changed');
  };
}
