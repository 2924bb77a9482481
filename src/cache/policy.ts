// The rules of the cache, without any doing: how long an answer lives, and what an entry is good for now.
import type { Bytes } from '../handle/bytes.js';
import type { Answer } from '../handle/outcome.js';
import type { Ttl } from '../handle/value.js';
import type { Entry, Times } from './entry.js';

/** How long answers may live; all in milliseconds, as configured under `cache`. */
export interface LifetimeBounds {
  found: { minTtl: number; maxTtl: number };
  notFound: { ttl: number };
  staleIfError: number;
  /** Most for what a mirror said: it may not know yet what the primary knows. */
  mirrorMaxTtl?: number;
}

/**
 * Makes the entry of an answer. Its life counts from `askedAt`, when the question was sent: the
 * record may have changed at any time after that.
 */
export function makeEntry(answer: Answer, askedAt: number, bounds: LifetimeBounds): Entry {
  const mostMs = answer.isFromMirror ? (bounds.mirrorMaxTtl ?? Infinity) : Infinity;
  const staleAt = askedAt + Math.min(lifetime(answer, askedAt, bounds), mostMs);
  return {
    kind: answer.kind,
    values: answer.kind === 'found' ? answer.values : ('' as Bytes),
    message: answer.kind === 'not-found' ? (answer.message ?? '') : '',
    cachedAt: askedAt,
    staleAt,
    deleteAt: staleAt + (isNoNews(answer) ? 0 : bounds.staleIfError),
  };
}

/** A mirror that does not know a handle may lag behind; nothing stands in for longer than it does. */
const isNoNews = ({ kind, isFromMirror }: Answer): boolean => kind !== 'found' && isFromMirror === true;

/**
 * A life of nothing: asked for together it is shared, but it is not kept. A life that was over before the
 * answer arrived is another matter: such an entry can still stand in for a failing upstream.
 */
export function isWorthKeeping(entry: Entry, now: number): boolean {
  return entry.staleAt > entry.cachedAt && entry.deleteAt > now;
}

/** Design decisions 4 and 5: the smallest TTL of the public values within bounds, or the not-found time. */
function lifetime(answer: Answer, askedAt: number, { found, notFound }: LifetimeBounds): number {
  if (answer.kind !== 'found') return notFound.ttl;
  // Not as arguments: a record may have more values than a call can take.
  const smallest = answer.ttls.reduce<number>(
    (least, ttl) => Math.min(least, remaining(ttl, askedAt)),
    Infinity,
  );
  if (smallest <= 0) return 0;
  return Math.min(Math.max(smallest, found.minTtl), found.maxTtl);
}

/** A relative TTL counts from the load; an absolute one until its date, and a date nobody can read is over. */
function remaining(ttl: Ttl, askedAt: number): number {
  if (typeof ttl === 'number') return ttl * 1000;
  const until = Date.parse(ttl);
  return Number.isNaN(until) ? 0 : until - askedAt;
}

/** What was asked so short a time before may be newer than what a mirror says now. */
export function isNewerThanMirror(
  entry: Entry,
  askedAt: number,
  { mirrorMaxTtl = 0 }: LifetimeBounds,
): boolean {
  return askedAt - entry.cachedAt < mirrorMaxTtl;
}

/** What an entry is good for: answering, standing in for a failing upstream, or nothing. */
export type Use = 'fresh' | 'stale' | 'none';

/**
 * The rule of freshness, for entries and for responses prepared from them. An entry from before `trustedSince` may
 * have missed an invalidation.
 */
export const isFresh = ({ cachedAt, staleAt }: Times, now: number, trustedSince: number): boolean =>
  now < staleAt && cachedAt >= trustedSince;

/** Judges an entry in any tier. */
export function judge(entry: Entry | undefined, now: number, trustedSince = 0): Use {
  if (entry === undefined || now >= entry.deleteAt) return 'none';
  return isFresh(entry, now, trustedSince) ? 'fresh' : 'stale';
}

/** Less than a tenth of the life is left: an entry that is used often enough is refreshed ahead. */
export const isNearEnd = ({ cachedAt, staleAt }: Times, now: number): boolean =>
  staleAt - now < (staleAt - cachedAt) / 10;
