// Makes the redirects and pages, on the same cache and resolver as everything else.
import type { Hit } from '../record/resolve.js';
import { type Redirect, createRedirect } from '../redirect/redirect.js';
import type { Resolver } from '../resolver/resolver.js';
import { type Parts, reportUnexpected } from './parts.js';

export function makeRedirect(
  { config, logger, metrics, now }: Parts,
  { resolver, onHit }: { resolver: Resolver<unknown>; onHit: (hit: Hit) => void },
): Redirect {
  const { title, logoUrl, footer, footerUrl } = config.page;
  return createRedirect({
    resolve: (handle, options) => resolver.resolve(handle, options),
    keyOf: (handle) => resolver.keyOf(handle),
    allowedHosts: config.redirect.allowedHosts ?? undefined,
    house: {
      title,
      logoUrl: logoUrl ?? undefined,
      footer: footer ?? undefined,
      footerUrl: footerUrl ?? undefined,
    },
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
