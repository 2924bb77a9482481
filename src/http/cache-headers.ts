// Age, Cache-Control, Expires and Cache-Status of a response, as pure functions of an entry and the time.
import type { Times } from '../cache/entry.js';
import type { Config } from '../config/schema.js';
import type { FromEntry } from '../resolver/resolution.js';
import { type HeaderLines, linesOf } from './raw-response.js';

/** Our name in Cache-Status (RFC 9211 §2). */
const CACHE_NAME = 'handle-resolver-proxy';

/** A downstream cache must not mix up callers, encodings or CORS headers. */
export const VARY = 'Accept-Encoding, Authorization, Origin';

/** With further headers on which the response depends. */
export const varyOf = (names: readonly string[] = []): string => [...names, VARY].join(', ');

/** How long others may reuse a response with this remaining TTL, as headers: Cache-Control and, if it has one, Expires. */
export type Freshness = (ttlSeconds: number, now: number) => Record<string, string>;

/** Bounds on the reuse of a response, beside the remaining TTL; 0 allows none. */
type ReuseLimits = Pick<Config['http'], 'clientMaxAgeMs' | 'sharedMaxAgeMs'>;

/**
 * Records: a client validates each reuse, because its own cache would show it the record from before its own write
 * under every URL but the one that it wrote to (RFC 9111 §4.4).
 */
export const recordFreshness =
  ({ sharedMaxAgeMs }: Pick<ReuseLimits, 'sharedMaxAgeMs'>): Freshness =>
  (ttlSeconds) => ({
    'Cache-Control': `public, max-age=0, must-revalidate${sharedMaxAge(ttlSeconds, sharedMaxAgeMs)}`,
  });

/**
 * Redirects and pages. Caches subtract `Age` from `max-age` (RFC 9111 §4.2), so none keeps the response longer than that
 * after the upstream request. `Expires` says the same to HTTP/1.0 caches.
 */
export const redirectFreshness =
  ({ clientMaxAgeMs, sharedMaxAgeMs }: ReuseLimits): Freshness =>
  (ttlSeconds, now) => {
    const maxAge = bounded(ttlSeconds, clientMaxAgeMs);
    return {
      'Cache-Control': `public, max-age=${maxAge}${sharedMaxAge(ttlSeconds, sharedMaxAgeMs)}`,
      Expires: new Date(now + maxAge * 1000).toUTCString(),
    };
  };

/** How long clients may reuse records, and redirects. */
export interface FreshnessRules {
  freshness: Freshness;
  redirectFreshness: Freshness;
}

export const freshnessRules = ({ http }: { http: ReuseLimits }): FreshnessRules => ({
  freshness: recordFreshness(http),
  redirectFreshness: redirectFreshness(http),
});

const sharedMaxAge = (ttlSeconds: number, sharedMaxAgeMs: number): string =>
  sharedMaxAgeMs === 0 ? '' : `, s-maxage=${bounded(ttlSeconds, sharedMaxAgeMs)}`;

const bounded = (ttlSeconds: number, limitMs: number): number =>
  Math.max(0, Math.min(ttlSeconds, Math.floor(limitMs / 1000)));

/** The same for one client only: a shared cache must not store the response. */
export const privateOnly = (cacheControl: string): string =>
  cacheControl.replace('public', 'private').replace(/, s-maxage=\d+/, '');

interface CacheFacts {
  resolution: FromEntry;
  authoritative: boolean;
  now: number;
  freshness: Freshness;
}

/** The cache headers of a response from an entry. */
export function cacheHeaders(facts: CacheFacts): Record<string, string> {
  const { resolution, authoritative, now, freshness } = facts;
  const { entry, stale, from, collapsed } = resolution;
  if (from === 'memory' && stale === undefined && !collapsed && !authoritative) {
    return hitHeaders(entry, now, freshness);
  }
  const isReusable = stale === undefined && !authoritative;
  return {
    Age: ageOf(entry, now),
    ...freshness(isReusable ? ttlOf(entry, now) : 0, now),
    ...(authoritative && { 'Cache-Control': 'no-cache' }),
    'Cache-Status': cacheStatus({ resolution, authoritative, ttl: ttlOf(entry, now) }),
  };
}

/** The same for a plain hit. */
function hitHeaders(entry: Times, now: number, freshness: Freshness): Record<string, string> {
  const ttl = ttlOf(entry, now);
  return {
    Age: ageOf(entry, now),
    ...freshness(ttl, now),
    'Cache-Status': `${CACHE_NAME}; hit; ttl=${ttl}`,
  };
}

/** Above the usual TTLs; a pair of age and TTL below it fits into one small integer. */
const SHARED_SECONDS = 1 << 15;
const MAX_SHARED = 4096;

/** The headers of a plain hit as lines, shared within a second by all entries with the same age and remaining TTL. */
export function createHitLines(freshness: Freshness): (entry: Times, now: number) => HeaderLines {
  const shared = new Map<number, HeaderLines>();
  let second = 0;
  const write = (entry: Times, now: number): HeaderLines =>
    linesOf(Object.entries(hitHeaders(entry, now, freshness)).flat());
  return function hitLines(entry, now) {
    const age = Math.floor((now - entry.requestedAt) / 1000);
    const life = ttlOf(entry, now);
    if (age < 0 || life < 0 || age >= SHARED_SECONDS || life >= SHARED_SECONDS) return write(entry, now);
    const current = Math.floor(now / 1000);
    if (current !== second || shared.size > MAX_SHARED) shared.clear();
    second = current;
    const pair = age * SHARED_SECONDS + life;
    let lines = shared.get(pair);
    if (lines === undefined) {
      lines = write(entry, now);
      shared.set(pair, lines);
    }
    return lines;
  };
}

const ageOf = (entry: Times, now: number): string =>
  String(Math.max(0, Math.floor((now - entry.requestedAt) / 1000)));

/** Remaining TTL in seconds; 0 for an entry that was made stale by an invalidation. */
const ttlOf = (entry: Times, now: number): number =>
  entry.staleAt === 0 ? 0 : Math.floor((entry.staleAt - now) / 1000);

/** RFC 9211: `hit`, or the reason for a request upstream (`fwd`); a stale response has a negative ttl. */
function cacheStatus({
  resolution,
  authoritative,
  ttl,
}: {
  resolution: FromEntry;
  authoritative: boolean;
  ttl: number;
}): string {
  const { from, stale, collapsed, stored } = resolution;
  const detail = stale ?? (from === 'redis' ? 'redis' : undefined);
  const reason = authoritative ? 'request' : 'miss';
  // Names and whole numbers only, which RFC 9651 writes as they are.
  return [
    CACHE_NAME,
    from === 'upstream' ? `fwd=${reason}` : 'hit',
    `ttl=${ttl}`,
    ...(stored === true ? ['stored'] : []),
    ...(collapsed ? ['collapsed'] : []),
    ...(detail === undefined ? [] : [`detail=${detail}`]),
  ].join('; ');
}
