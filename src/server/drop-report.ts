// Counts and logs the connections that a listener closes, in its bounds, to protect the others.
import type { Context } from '../context.js';

/** The listener, as it is named in the log. */
export type ListenerName = 'http' | 'native-tcp';

type DropReason = Parameters<Context['metrics']['countDroppedConnection']>[0];

/** Connections may be dropped by the thousand. */
const LOG_INTERVAL_MS = 60_000;

export function createDropReport(
  { log, metrics, clock: { now } }: Context,
  listener: ListenerName,
  message: string,
): (reason: DropReason, network: string) => void {
  let dropped = 0;
  let loggedAt = -Infinity;
  return function reportDrop(reason, network) {
    metrics.countDroppedConnection(reason);
    dropped++;
    if (now() - loggedAt < LOG_INTERVAL_MS) return;
    log.warn({ listener, reason, network, dropped }, message);
    loggedAt = now();
    dropped = 0;
  };
}
