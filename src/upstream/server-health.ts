// Whether a server works, judged by its responses and failures; reports each change once.
import type { ServiceError } from '../errors.js';
import { codeOf, scopeOf } from './failure.js';

/** The state of a server from now on. */
export type ServerHealth = { state: 'unknown' | 'working' } | { state: 'failing'; failure: ServiceError };

/** `failures`: how many requests failed since the last report. */
export type ReportHealth = (health: ServerHealth, failures: number) => void;

interface HealthWatch {
  succeeded: () => void;
  failed: (failure: ServiceError) => void;
}

/** A server that answers only some requests is not reported more often. */
const MIN_INTERVAL_MS = 1000;

/** Errors of a request that this process has aborted itself, because it ends. */
const OWN_ENDS: readonly unknown[] = ['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'];

export function watchHealth({ now, report }: { now: () => number; report: ReportHealth }): HealthWatch {
  let reason: string | undefined;
  let reportedAt = -Infinity;
  let failures = 0;

  function change(to: string, health: ServerHealth): void {
    const at = now();
    if (to === reason || at - reportedAt < MIN_INTERVAL_MS) return;
    report(health, failures);
    reason = to;
    reportedAt = at;
    failures = 0;
  }

  return {
    succeeded() {
      if (reason !== 'working') change('working', { state: 'working' });
    },
    failed(failure) {
      const cause = codeOf(failure.cause);
      // A failure for one record says nothing of the server.
      if (scopeOf(failure) === 'record' || OWN_ENDS.includes(cause)) return;
      failures++;
      change(`${failure.code} ${cause ?? ''}`, { state: 'failing', failure });
    },
  };
}
