// What caches and clients behind us are told about an answer. Pure: the time is handed in.
import { serializeList, Token } from 'structured-headers';
import type { Times } from '../cache/entry.js';
import type { FromEntry } from '../resolver/resolution.js';
import { type HeaderLines, linesOf } from './raw-response.js';

/** Our name in Cache-Status (RFC 9211 §2). */
const CACHE_NAME = 'handle-resolver-proxy';

/** No cache behind us may mix callers up or hand out the wrong encoding or CORS answer. */
export const VARY = 'Accept-Encoding, Authorization, Origin';

export interface CacheFacts {
  resolution: FromEntry;
  authoritative: boolean;
  now: number;
  clientMaxAgeMs: number;
}

/**
 * Age, Cache-Control and Cache-Status of an answer made of an entry. `max-age` is the life that is
 * left but at most `http.clientMaxAge`; as caches subtract `Age` from it (RFC 9111 §4.2), none of
 * them keeps an answer longer than that after the upstream was asked.
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
    'Cache-Status': cacheStatus({ resolution, authoritative, lifeLeft: lifeLeftOf(entry, now) }),
  };
}

/** The same for a plain hit, which is most of them. */
function hitHeaders(entry: Times, now: number, clientMaxAgeMs: number): Record<string, string> {
  return {
    Age: ageOf(entry, now),
    'Cache-Control': `public, max-age=${maxAgeOf(entry, now, clientMaxAgeMs)}`,
    'Cache-Status': `${CACHE_NAME}; hit; ttl=${lifeLeftOf(entry, now)}`,
  };
}

/** More seconds than an entry lives with the usual settings; both of a pair fit into one small integer. */
const SHARED_SECONDS = 1 << 15;
const MOST_SHARED = 4096;

/** The headers of a plain hit as lines. Entries of the same age and life share them: nothing is kept with each. */
export function createHitLines(clientMaxAgeMs: number): (entry: Times, now: number) => HeaderLines {
  const shared = new Map<number, HeaderLines>();
  const write = (entry: Times, now: number): HeaderLines =>
    linesOf(Object.entries(hitHeaders(entry, now, clientMaxAgeMs)).flat());
  return function hitLines(entry, now) {
    const age = Math.floor((now - entry.cachedAt) / 1000);
    const life = lifeLeftOf(entry, now);
    if (age < 0 || life < 0 || age >= SHARED_SECONDS || life >= SHARED_SECONDS) return write(entry, now);
    const pair = age * SHARED_SECONDS + life;
    let lines = shared.get(pair);
    if (lines === undefined) {
      if (shared.size >= MOST_SHARED) shared.clear();
      lines = write(entry, now);
      shared.set(pair, lines);
    }
    return lines;
  };
}

const ageOf = (entry: Times, now: number): string =>
  String(Math.max(0, Math.floor((now - entry.cachedAt) / 1000)));

/** An entry that was made stale tells nothing of since when. */
const lifeLeftOf = (entry: Times, now: number): number =>
  entry.staleAt === 0 ? 0 : Math.floor((entry.staleAt - now) / 1000);

const maxAgeOf = (entry: Times, now: number, clientMaxAgeMs: number): number =>
  Math.max(0, Math.min(lifeLeftOf(entry, now), Math.floor(clientMaxAgeMs / 1000)));

/** RFC 9211: `hit`, or why the request went on (`fwd`); a negative ttl is a stale answer. */
function cacheStatus({
  resolution,
  authoritative,
  lifeLeft,
}: {
  resolution: FromEntry;
  authoritative: boolean;
  lifeLeft: number;
}): string {
  const { from, stale, collapsed, stored } = resolution;
  const members = new Map<string, string | number | boolean | Token>();
  if (from === 'upstream') members.set('fwd', new Token(authoritative ? 'request' : 'miss'));
  else members.set('hit', true);
  members.set('ttl', lifeLeft);
  if (stored === true) members.set('stored', true);
  if (collapsed) members.set('collapsed', true);
  const detail = stale ?? (from === 'redis' ? 'redis' : undefined);
  if (detail !== undefined) members.set('detail', new Token(detail));
  // A space after each semicolon is allowed (RFC 9651 §4.2.3.2), and easier on the eye of an operator.
  return serializeList([[new Token(CACHE_NAME), members]]).replaceAll(';', '; ');
}
