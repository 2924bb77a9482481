// Connects the bounds of client connections with the trusted proxies, the metrics and the log.
import { createProxyTrust } from '../server/client-address.js';
import type { ConnectionBounds } from '../server/connection-bounds.js';
import type { SharedDeps } from './shared-deps.js';

/** Trusted proxies, which have no bound of their own, and the reports of one listener. */
export type ConnectionReports = Required<
  Pick<ConnectionBounds, 'isTrustedProxy' | 'onDropped' | 'onIdleClosed'>
>;

/** Connections may be dropped by the thousand. */
const LOG_INTERVAL_MS = 60_000;

export function makeConnectionReports(
  shared: SharedDeps,
  listener: 'http' | 'native-tcp',
): ConnectionReports {
  const { logger, metrics, now } = shared;
  let dropped = 0;
  let loggedAt = -Infinity;
  return {
    isTrustedProxy: makeReloadedTrust(shared),
    onIdleClosed: metrics.countIdleClosed,
    onDropped(reason, network) {
      metrics.countDroppedConnection(reason);
      dropped++;
      if (now() - loggedAt < LOG_INTERVAL_MS) return;
      logger.warn({ listener, reason, network, dropped }, 'too many connections, closing new ones');
      loggedAt = now();
      dropped = 0;
    },
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
