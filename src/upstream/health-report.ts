// Logs whether a server works, and why not; the same for its circuit breaker, also as metrics.
import type { Context } from '../context.js';
import type { ServiceError } from '../errors.js';
import { type ServerKeys, codeOf, explain, scopeOf } from './failure.js';
import type { HealthReport } from './health.js';

/** Minimum interval between log lines for a server that alternates between success and failure. */
const MIN_INTERVAL_MS = 1000;

/** Errors of requests that this process aborted at shutdown. */
const OWN_ENDS: readonly unknown[] = ['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'];

/** Creates the report of a server's health to the log and the metrics. */
export function createHealthReport(
  { url: server, keys }: { url: string; keys: ServerKeys },
  { log, metrics, clock }: Context,
): HealthReport {
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

  metrics.addServer(server);
  metrics.setBreakerState('closed', server);
  return {
    breakerChanged(state) {
      metrics.setBreakerState(state, server);
      log.warn({ breaker: state, server }, 'circuit breaker state changed');
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
