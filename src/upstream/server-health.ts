// Whether a server works, judged by its responses and failures; logs each change once.
import type { Context } from '../context.js';
import type { ServiceError } from '../errors.js';
import { codeOf, explain, scopeOf } from './failure.js';
import type { ServerKeys } from './server-keys.js';

interface HealthWatch {
  succeeded: () => void;
  failed: (failure: ServiceError) => void;
}

/** A server that answers only some requests is not logged more often. */
const MIN_INTERVAL_MS = 1000;

/** Errors of a request that this process has aborted itself, because it ends. */
const OWN_ENDS: readonly unknown[] = ['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'];

interface WatchedServer {
  url: string;
  keys: ServerKeys;
}

export function watchHealth({ url: server, keys }: WatchedServer, context: Context): HealthWatch {
  const { log, metrics, clock } = context;
  let reason: string | undefined;
  let loggedAt = -Infinity;
  /** Since the last line. */
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
      // A failure for one record says nothing of the server.
      if (scopeOf(failure) === 'record' || OWN_ENDS.includes(cause)) return;
      failures++;
      change(`${failure.code} ${cause ?? ''}`, failure);
    },
  };
}
