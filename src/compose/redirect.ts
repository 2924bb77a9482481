// Creates the redirects and pages, with the resolver and cache of the other interfaces.
import type { Hit } from '../record/response-cache.js';
import { type RedirectInterface, createRedirect } from '../redirect/redirect.js';
import type { Resolver } from '../resolver/resolver.js';
import { type Parts, reportUnexpected } from './parts.js';
import { siteOf } from './site.js';

export function makeRedirect(
  { config, logger, metrics, now }: Parts,
  { resolver, onHit }: { resolver: Resolver<unknown>; onHit: (hit: Hit) => unknown },
): RedirectInterface {
  return createRedirect({
    resolve: (handle, options) => resolver.resolve(handle, options),
    keyOf: (handle) => resolver.keyOf(handle),
    allowedHosts: config.redirect.allowedHosts ?? undefined,
    site: siteOf(config),
    clientMaxAgeMs: config.http.clientMaxAge,
    gzipMinBytes: config.http.gzipMinBytes,
    onStale: (reason) => {
      metrics.staleAnswered(reason);
    },
    onHit,
    onUnexpected: reportUnexpected({ logger, metrics }),
    now,
    random: Math.random,
  });
}
