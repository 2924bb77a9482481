// The warning that the Handle server ignores logins because upstream.url is plain http.
import type { SharedDeps } from './shared-deps.js';

/** Clients repeat a refused write. */
const WARN_EVERY_MS = 60_000;

/**
 * Called for a write with a login that was refused as if it had none. Not before: another proxy, or a port that the
 * server's operator has marked as secure, takes logins over http. Undefined over https.
 */
export function warnOfIgnoredLogins(
  { logger, now }: Pick<SharedDeps, 'logger' | 'now'>,
  url: string,
): (() => void) | undefined {
  if (!url.startsWith('http:')) return undefined;
  let warnedAt = -Infinity;
  return function onIgnoredLogin() {
    if (now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = now();
    const remedy = 'set upstream.url to an https address';
    logger.warn({ upstream: url, remedy }, 'the Handle server ignored the login of a write');
  };
}
