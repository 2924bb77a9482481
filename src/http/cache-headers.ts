// Age, Cache-Control, Expires and Cache-Status of a response, as pure functions of an entry and the time.
import type { Times } from '../cache/entry.js';
import type { Config } from '../config/schema.js';
import type { FromEntry } from '../resolver/resolution.js';
import { type HeaderLines, linesOf } from './raw-response.js';

/** Name of this cache in Cache-Status (RFC 9211 §2). */
const CACHE_NAME = 'handle-resolver-proxy';

/** Downstream caches must keep callers, encodings and CORS headers apart. */
export const VARY = 'Accept-Encoding, Authorization, Origin';

/** `Vary` with additional headers on which the response depends. */
export const varyOf = (names: readonly string[] = []): string =>
  names.length === 0 ? VARY : [...names, VARY].join(', ');

/** Headers for downstream caches (Cache-Control, maybe Expires) of a response with this remaining TTL. */
export type Freshness = (ttlSeconds: number, now: number) => Record<string, string>;

/** Limits on the reuse of a response, in addition to the remaining TTL; 0 forbids reuse. */
type ReuseLimits = Pick<Config['http'], 'clientMaxAgeMs' | 'sharedMaxAgeMs'>;

/**
 * For records: clients revalidate each reuse, because a write invalidates only its own URL in a client's cache
 * (RFC 9111 §4.4), so other URLs of the handle would still show the old record.
 */
export const recordFreshness =
  ({ sharedMaxAgeMs }: Pick<ReuseLimits, 'sharedMaxAgeMs'>): Freshness =>
  (ttlSeconds) => ({
    'Cache-Control': `public, max-age=0, must-revalidate${sharedMaxAge(ttlSeconds, sharedMaxAgeMs)}`,
  });

/**
 * For redirects and pages. Caches subtract `Age` from `max-age` (RFC 9111 §4.2), so the limit counts from the upstream
 * request. `Expires` is for HTTP/1.0 caches.
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

/** Freshness of records and of redirects for clients. */
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

/** Cache-Control that forbids storing in shared caches. */
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
  const ttl = ttlOf(entry, now);
  // Spread objects would change the hidden class of the headers at each member.
  const { 'Cache-Control': cacheControl = '', Expires } = freshness(isReusable ? ttl : 0, now);
  return {
    Age: ageOf(entry, now),
    'Cache-Control': authoritative ? 'no-cache' : cacheControl,
    ...(Expires !== undefined && { Expires }),
    'Cache-Status': cacheStatus({ resolution, authoritative, ttl }),
  };
}

/** The cache headers of a fresh hit in memory. */
function hitHeaders(entry: Times, now: number, freshness: Freshness): Record<string, string> {
  const ttl = ttlOf(entry, now);
  return {
    Age: ageOf(entry, now),
    ...freshness(ttl, now),
    'Cache-Status': `${CACHE_NAME}; hit; ttl=${ttl}`,
  };
}

/** Exceeds the usual TTLs; age and TTL below it fit into one small integer. */
const SHARED_SECONDS = 1 << 15;
const MAX_SHARED = 4096;

/** Header lines of fresh hits in memory; entries with the same age and TTL share them within a second. */
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

/** Remaining TTL in seconds, negative when expired; 0 for an entry that an invalidation has made stale. */
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
  // Tokens and integers, which RFC 9651 serialises unquoted.
  let status = `${CACHE_NAME}; ${from === 'upstream' ? `fwd=${reason}` : 'hit'}; ttl=${ttl}`;
  if (stored === true) status += '; stored';
  if (collapsed) status += '; collapsed';
  if (detail !== undefined) status += `; detail=${detail}`;
  return status;
}
