// Age, Cache-Control and Cache-Status of a response, as pure functions of an entry and the time.
import { serializeList, Token } from 'structured-headers';
import type { Times } from '../cache/entry.js';
import type { FromEntry } from '../resolver/resolution.js';
import { type HeaderLines, linesOf } from './raw-response.js';

/** Our name in Cache-Status (RFC 9211 §2). */
const CACHE_NAME = 'handle-resolver-proxy';

/** A downstream cache must not mix up callers, encodings or CORS headers. */
export const VARY = 'Accept-Encoding, Authorization, Origin';

interface CacheFacts {
  resolution: FromEntry;
  authoritative: boolean;
  now: number;
  clientMaxAgeMs: number;
}

/**
 * The cache headers of a response from an entry. `max-age` is the remaining TTL, at most
 * `http.clientMaxAge`; caches subtract `Age` from it (RFC 9111 §4.2), so no cache keeps the response
 * longer than that after the upstream request.
 */
export function cacheHeaders(facts: CacheFacts): Record<string, string> {
  const { resolution, authoritative, now, clientMaxAgeMs } = facts;
  const { entry, stale, from, collapsed } = resolution;
  if (from === 'memory' && stale === undefined && !collapsed && !authoritative) {
    return hitHeaders(entry, now, clientMaxAgeMs);
  }
  const maxAge = stale === undefined ? maxAgeOf(entry, now, clientMaxAgeMs) : 0;
  return {
    Age: ageOf(entry, now),
    'Cache-Control': authoritative ? 'no-cache' : `public, max-age=${maxAge}`,
    'Cache-Status': cacheStatus({ resolution, authoritative, ttl: ttlOf(entry, now) }),
  };
}

/** The same for a plain hit. */
function hitHeaders(entry: Times, now: number, clientMaxAgeMs: number): Record<string, string> {
  return {
    Age: ageOf(entry, now),
    'Cache-Control': `public, max-age=${maxAgeOf(entry, now, clientMaxAgeMs)}`,
    'Cache-Status': `${CACHE_NAME}; hit; ttl=${ttlOf(entry, now)}`,
  };
}

/** Above the usual TTLs; a pair of age and TTL below it fits into one small integer. */
const SHARED_SECONDS = 1 << 15;
const MAX_SHARED = 4096;

/** The headers of a plain hit as lines, shared by all entries with the same age and remaining TTL. */
export function createHitLines(clientMaxAgeMs: number): (entry: Times, now: number) => HeaderLines {
  const shared = new Map<number, HeaderLines>();
  const write = (entry: Times, now: number): HeaderLines =>
    linesOf(Object.entries(hitHeaders(entry, now, clientMaxAgeMs)).flat());
  return function hitLines(entry, now) {
    const age = Math.floor((now - entry.requestedAt) / 1000);
    const life = ttlOf(entry, now);
    if (age < 0 || life < 0 || age >= SHARED_SECONDS || life >= SHARED_SECONDS) return write(entry, now);
    const pair = age * SHARED_SECONDS + life;
    let lines = shared.get(pair);
    if (lines === undefined) {
      if (shared.size >= MAX_SHARED) shared.clear();
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

const maxAgeOf = (entry: Times, now: number, clientMaxAgeMs: number): number =>
  Math.max(0, Math.min(ttlOf(entry, now), Math.floor(clientMaxAgeMs / 1000)));

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
  const members = new Map<string, string | number | boolean | Token>();
  if (from === 'upstream') members.set('fwd', new Token(authoritative ? 'request' : 'miss'));
  else members.set('hit', true);
  members.set('ttl', ttl);
  if (stored === true) members.set('stored', true);
  if (collapsed) members.set('collapsed', true);
  const detail = stale ?? (from === 'redis' ? 'redis' : undefined);
  if (detail !== undefined) members.set('detail', new Token(detail));
  // A space after each semicolon is allowed (RFC 9651 §4.2.3.2) and readable.
  return serializeList([[new Token(CACHE_NAME), members]]).replaceAll(';', '; ');
}
