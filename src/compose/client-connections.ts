// Connects the bounds of client connections with the trusted proxies, the metrics and the log.
import { createProxyTrust } from '../server/client-address.js';
import type { ConnectionBounds } from '../server/connection-bounds.js';
import type { UnsentBounds } from '../server/unsent.js';
import type { SharedDeps } from './shared-deps.js';

/** Trusted proxies, which have no bound of their own, the budget of unread answers, and the reports of one listener. */
export type ConnectionReports = Required<
  Pick<ConnectionBounds, 'isTrustedProxy' | 'onDropped' | 'onIdleClosed'> & UnsentBounds
>;

/** Connections may be dropped by the thousand. */
const LOG_INTERVAL_MS = 60_000;

export function makeConnectionReports(
  shared: SharedDeps,
  listener: 'http' | 'native-tcp',
): ConnectionReports {
  const { metrics, unsent } = shared;
  const logCrowd = makeDropLog(shared, 'too many connections, closing new ones');
  const logUnread = makeDropLog(shared, 'unread answers, closing their connections');
  return {
    isTrustedProxy: makeReloadedTrust(shared),
    unsent,
    onIdleClosed: metrics.countIdleClosed,
    onDropped(reason, network) {
      metrics.countDroppedConnection(reason);
      (reason === 'unread' ? logUnread : logCrowd)({ listener, reason, network });
    },
  };
}

function makeDropLog({ logger, now }: SharedDeps, message: string): (facts: object) => void {
  let dropped = 0;
  let loggedAt = -Infinity;
  return (facts) => {
    dropped++;
    if (now() - loggedAt < LOG_INTERVAL_MS) return;
    logger.warn({ ...facts, dropped }, message);
    loggedAt = now();
    dropped = 0;
  };
}

/** A reload may change the proxies. */
function makeReloadedTrust(shared: SharedDeps): ConnectionReports['isTrustedProxy'] {
  let known = shared.config.http.trustedProxies;
  let isTrusted = createProxyTrust(known);
  return (address) => {
    const { trustedProxies } = shared.config.http;
    if (trustedProxies !== known) {
      known = trustedProxies;
      isTrusted = createProxyTrust(known);
    }
    return isTrusted(address, 0);
  };
}
