// One server: reads of whole records behind a limiter and its health, which is logged when it changes.
import type { Context } from '../context.js';
import { CATALOGUE, ServiceError } from '../errors.js';
import type { Outcome } from '../handle/outcome.js';
import type { LimiterUsage } from './concurrency-limiter.js';
import type { HandleRead, ServerAccess, ServerSettings } from './contract.js';
import { exchange, parseAddress, requestHeaders } from './exchange.js';
import { type ServerKeys, codeOf, explainServerFailure, scopeOf } from './failure.js';
import { type BreakerState, ServerHealth, type HealthReport } from './health.js';
import { readInSlices } from './reply.js';

export interface UpstreamServer {
  /**
   * Reads a handle until the deadline (monotonic, ms), including the queue for a slot and the retry.
   *
   * @throws ServiceError UPSTREAM_* or OVERLOADED
   */
  read: (read: HandleRead, deadline: number) => Promise<Outcome>;
  health: ServerHealth;
  usage: () => LimiterUsage;
}

/**
 * Creates one server. `keys`: undefined if it reports neither health nor breaker state; `label`: its name in
 * metrics.
 */
export function createServer(
  settings: ServerSettings,
  context: Context,
  { pseudonym, dispatcher, limiter, slicer }: ServerAccess,
  keys: ServerKeys | undefined,
  label = settings.url,
): UpstreamServer {
  const { url, caseSensitive, maxRecordBytes: maxBodyBytes } = settings;
  const { origin } = parseAddress(url);
  const protocol = settings.source.protocol(settings);
  const health = new ServerHealth(
    settings,
    context.clock,
    keys && createHealthReport({ url, keys }, context),
  );
  const { metrics, hooks } = context;
  // No caller header except `Via` is sent, because many callers share the response.
  const headersOfAll = requestHeaders({ pseudonym });

  return {
    health,
    usage: () => limiter.usage(),
    async read({ handle, authoritative, caller }, deadline) {
      const asked = protocol.read(handle, authoritative);
      if ('kind' in asked) return asked;
      health.assertNotPaused();
      const headers = caller?.via ? requestHeaders({ pseudonym, via: caller.via }) : headersOfAll;
      const request = { origin, ...asked, headers };
      const send = async (startedAt: number, hasWaited: boolean): Promise<Outcome> => {
        // A pause may have started meanwhile.
        if (hasWaited) health.assertNotPaused();
        const attempt = health.begin(handle.key);
        let result = 'INTERNAL';
        try {
          const timeoutMs = Math.max(1, deadline - startedAt);
          const response = await exchange(dispatcher, request, { timeoutMs, maxBodyBytes });
          const pauseMs = health.pauseIfBusy(response);
          const { status, headers: received, body } = response;
          // Named: a spread of the response costs 3 µs, more than the rest of a read in this process (measured).
          const reply = { status, headers: received, body, handle: handle.text, caseSensitive, pauseMs };
          const read = readInSlices(slicer, protocol.outcomeOf(reply), { chars: body.length, caller });
          const outcome = read instanceof Promise ? await read : read;
          health.succeeded();
          result = outcome.kind;
          return outcome;
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          result = error.code;
          health.failed(attempt, error);
          throw error;
        } finally {
          const durationMs = performance.now() - startedAt;
          metrics.countUpstreamRequest({ server: label, outcome: result, ms: durationMs });
          for (const { addCall } of hooks.spans)
            addCall({ name: 'GET upstream', durationMs, result, isFailure: result in CATALOGUE });
        }
      };
      return limiter.run(send, { key: handle.key, caller });
    },
  };
}

/** Minimum interval between log lines for a server that alternates between success and failure. */
const MIN_INTERVAL_MS = 1000;
/** Interval between log lines for a server that keeps failing. */
const REPEAT_MS = 60_000;

/** Errors of requests that this process aborted at shutdown. */
const OWN_ENDS: readonly unknown[] = ['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'];

/** Creates the report of a server's health to the log and the metrics. */
function createHealthReport(
  { url: server, keys }: { url: string; keys: ServerKeys },
  { log, metrics, clock }: Context,
): HealthReport {
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
    breakerChanged(state) {
      metrics.setBreakerState(state, server);
      // A server that is down fails each trial, every few seconds.
      const isTrial = state === 'half-open' || breaker === 'half-open';
      const level = isTrial && state !== 'closed' ? 'debug' : 'warn';
      breaker = state;
      log[level]({ breaker: state, server }, 'circuit breaker state changed');
    },
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
