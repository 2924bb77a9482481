// Computes Age, Cache-Control, Expires and Cache-Status from an entry and the time.
import type { Clock } from '../clock.js';
import type { Times } from '../cache/entry.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import type { HandleRef } from '../handle/handle.js';
import type { FromEntry } from '../resolver/resolution.js';
import { type HeaderLines, linesOf } from './raw-response.js';

/** This cache's name in Cache-Status (RFC 9211 §2). */
export const CACHE_NAME = 'handle-resolver-proxy';

/** Makes downstream caches store responses separately by encoding, login and origin. */
export const VARY = 'Accept-Encoding, Authorization, Origin';

/** Returns `Vary` with additional header names. */
export const varyOf = (names: readonly string[] = []): string =>
  names.length === 0 ? VARY : [...names, VARY].join(', ');

/** Returns headers for downstream caches (Cache-Control, optionally Expires) for a remaining TTL. */
export type Freshness = (ttlSeconds: number) => Record<string, string>;

/**
 * Freshness of records. Clients revalidate every reuse: a write invalidates only its own URL in a client
 * cache (RFC 9111 §4.4), so other URLs of the handle would still serve the old record.
 */
export const recordFreshness =
  ({ http: { sharedMaxAgeMs } }: Config): Freshness =>
  (ttlSeconds) => ({
    'Cache-Control': `public, max-age=0, must-revalidate${sharedMaxAge(ttlSeconds, sharedMaxAgeMs)}`,
  });

/**
 * Freshness of redirects and pages. Caches subtract `Age` from `max-age` (RFC 9111 §4.2), so the limit starts
 * at the upstream request. The remaining TTL is sent, although that subtracts the age twice: the cache of nginx ignores
 * `Age`. `Expires` is for HTTP/1.0 caches.
 */
export const redirectFreshness =
  ({ http: { clientMaxAgeMs, sharedMaxAgeMs } }: Config, { wall }: Clock): Freshness =>
  (ttlSeconds) => {
    const maxAge = bounded(ttlSeconds, clientMaxAgeMs);
    return {
      'Cache-Control': `public, max-age=${maxAge}${sharedMaxAge(ttlSeconds, sharedMaxAgeMs)}`,
      Expires: new Date(wall() + maxAge * 1000).toUTCString(),
    };
  };

const sharedMaxAge = (ttlSeconds: number, sharedMaxAgeMs: number): string =>
  sharedMaxAgeMs === 0 ? '' : `, s-maxage=${bounded(ttlSeconds, sharedMaxAgeMs)}`;

const bounded = (ttlSeconds: number, limitMs: number): number =>
  Math.max(0, Math.min(ttlSeconds, Math.floor(limitMs / 1000)));

/** Rewrites Cache-Control to forbid storage in shared caches. */
export const privateOnly = (cacheControl: string): string =>
  cacheControl.replace('public', 'private').replace(/, s-maxage=\d+/, '');

interface CacheFacts {
  resolution: Omit<FromEntry, 'kind' | 'entry' | 'readAt'> & { entry: Times };
  authoritative: boolean;
  now: number;
  freshness: Freshness;
}

/** Returns the cache headers of a response from an entry. */
export function cacheHeaders(facts: CacheFacts): Record<string, string> {
  const { resolution, authoritative, now, freshness } = facts;
  const { entry, stale } = resolution;
  const isReusable = stale === undefined && !authoritative;
  const ttl = ttlOf(entry, now);
  // Avoids spreading the result, because each spread member would change the hidden class of the headers.
  const { 'Cache-Control': cacheControl = '', Expires } = freshness(isReusable ? ttl : 0);
  return {
    Age: ageSeconds(entry, now),
    'Cache-Control': authoritative ? 'no-cache' : cacheControl,
    ...(Expires !== undefined && { Expires }),
    'Cache-Status': cacheStatus(resolution, authoritative, ttl),
  };
}

/** Maximum age and TTL of shared lines. It exceeds usual TTLs, and both values fit in one small integer. */
const SHARED_SECONDS = 1 << 15;
const MAX_SHARED = 4096;

/** Creates the source of a fresh memory hit's header lines, shared within a second by entries of equal age and TTL. */
export function createHitLines(freshness: Freshness): (entry: Times, now: number) => HeaderLines {
  const shared = new Map<number, HeaderLines>();
  let second = 0;
  const newHitLines = (entry: Times, now: number): HeaderLines => {
    const resolution = { entry, from: 'memory' } as const;
    return linesOf(Object.entries(cacheHeaders({ resolution, authoritative: false, now, freshness })).flat());
  };
  return function hitLines(entry, now) {
    const age = Math.floor((now - entry.requestedAt) / 1000);
    const life = ttlOf(entry, now);
    if (age < 0 || life < 0 || age >= SHARED_SECONDS || life >= SHARED_SECONDS)
      return newHitLines(entry, now);
    const current = Math.floor(now / 1000);
    if (current !== second || shared.size > MAX_SHARED) shared.clear();
    second = current;
    const pair = age * SHARED_SECONDS + life;
    let lines = shared.get(pair);
    if (lines === undefined) {
      lines = newHitLines(entry, now);
      shared.set(pair, lines);
    }
    return lines;
  };
}

const ageSeconds = (entry: Times, now: number): string =>
  String(Math.max(0, Math.floor((now - entry.requestedAt) / 1000)));

/** Returns the remaining TTL (s), negative after expiry; 0 for an invalidated entry. */
const ttlOf = (entry: Times, now: number): number =>
  entry.staleAt === 0 ? 0 : Math.floor((entry.staleAt - now) / 1000);

/** Formats Cache-Status (RFC 9211): `hit`, or why the upstream was asked (`fwd`). A stale response has ttl < 0. */
function cacheStatus(resolution: CacheFacts['resolution'], authoritative: boolean, ttl: number): string {
  const { from, stale, collapsed, stored } = resolution;
  const detail = stale ?? (from === 'redis' ? 'redis' : undefined);
  const reason = authoritative ? 'request' : 'miss';
  // Tokens and integers, serialised unquoted (RFC 9651).
  let status = `${CACHE_NAME}; ${from === 'upstream' ? `fwd=${reason}` : 'hit'}; ttl=${ttl}`;
  if (stored === true) status += '; stored';
  if (collapsed) status += '; collapsed';
  if (detail !== undefined) status += `; detail=${detail}`;
  return status;
}

/** Returns plugins' lines for a response from these records alone; none if not stored: a write may be in flight. */
export const recordLines = (
  { hooks }: Context,
  { from, stored }: FromEntry,
  handles: readonly HandleRef[],
): readonly string[] =>
  from === 'upstream' && stored !== true
    ? []
    : hooks.recordHeaders
        .flatMap((each) => each(handles))
        .flatMap(([name, value]) => [name, Buffer.from(value).toString('latin1')]);
