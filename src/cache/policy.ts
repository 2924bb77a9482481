// The cache policy as pure functions: the TTL of an answer, and whether an entry is fresh, stale or unusable.
import { FOREVER_MS } from '../config/fields.js';
import type { Bytes } from '../handle/bytes.js';
import type { Answer } from '../handle/outcome.js';
import type { Ttl } from '../handle/value.js';
import { type Entry, type Times, asStale, shiftTimes } from './entry.js';

/** TTL bounds (ms), as configured under `cache`. */
export interface TtlBounds {
  found: { minTtlMs: number; maxTtlMs: number };
  notFound: { ttlMs: number };
  staleIfErrorMs: number;
  /** Maximum TTL of an answer from a secondary, which may lag behind the primary. */
  secondaryMaxTtlMs?: number;
}

/** The send time of a request. */
export interface RequestTime {
  requestedAt: number;
  /** The same time by the wall clock, for the absolute TTLs of values. */
  wallTime: number;
}

/** Creates an entry from an answer. The TTL counts from the request, because the record may have changed since then. */
export function makeEntry(answer: Answer, { requestedAt, wallTime }: RequestTime, bounds: TtlBounds): Entry {
  const maxMs = answer.isFromSecondary ? (bounds.secondaryMaxTtlMs ?? Infinity) : Infinity;
  const staleAt = requestedAt + Math.min(ttlMsOf(answer, wallTime, bounds), maxMs);
  return {
    kind: answer.kind,
    values: answer.kind === 'found' ? answer.values : ('' as Bytes),
    message: answer.kind === 'not-found' ? (answer.message ?? '') : '',
    requestedAt,
    staleAt,
    deleteAt: staleAt + (isSecondaryAbsence(answer) ? 0 : bounds.staleIfErrorMs),
  };
}

/** Whether a secondary, which may lag, reports no record or no public values: such an answer is never served stale. */
const isSecondaryAbsence = ({ kind, isFromSecondary }: Answer): boolean =>
  kind !== 'found' && isFromSecondary === true;

/**
 * Whether to store an entry. An answer with a TTL of 0 is only shared by the callers of its load. An answer
 * that expired before it arrived is stored, because it can be served stale when the upstream fails.
 */
export const isStorable = (entry: Entry, now: number): boolean =>
  entry.staleAt > entry.requestedAt && entry.deleteAt > now;

interface RestoredAt {
  now: number;
  /** The same time by the wall clock, which the times in a file follow. */
  wallTime: number;
  staleIfErrorMs: number;
  hasServer: boolean;
}

/**
 * Adapts an entry that is restored from a file and has not been revalidated. It becomes stale or, if no
 * server can revalidate it, permanently fresh. Its stale-if-error time grows if `staleIfErrorMs` was raised
 * after the entry was stored, unless it has none: such an entry ends now. An entry from the future, by a wall clock that was
 * wrong, counts as loaded now.
 */
export function makeUncheckedEntry(
  entry: Entry,
  { now, wallTime, staleIfErrorMs, hasServer }: RestoredAt,
): Entry {
  const known = shiftTimes(entry, now - Math.max(wallTime, entry.requestedAt));
  const end = now + FOREVER_MS;
  if (!hasServer) return { ...known, staleAt: end, deleteAt: end };
  // A secondary has reported this absence.
  if (known.kind !== 'found' && known.deleteAt === known.staleAt) return asStale({ ...known, deleteAt: now });
  return asStale({ ...known, deleteAt: Math.max(known.deleteAt, known.staleAt + staleIfErrorMs) });
}

/** Returns the smallest TTL of the public values, clamped unless expired (0); without any, that of not-found answers. */
function ttlMsOf(answer: Answer, wallTime: number, { found, notFound }: TtlBounds): number {
  if (answer.kind !== 'found') return notFound.ttlMs;
  // Math.min with all TTLs as arguments would overflow the stack for a record with very many values.
  let smallest = Infinity;
  for (const ttl of answer.ttls) smallest = Math.min(smallest, remainingMs(ttl, wallTime));
  if (smallest <= 0) return 0;
  return Math.min(Math.max(smallest, found.minTtlMs), found.maxTtlMs);
}

/** Returns the remaining TTL: relative from the load, absolute to its date; an invalid date counts as expired. */
function remainingMs(ttl: Ttl, wallTime: number): number {
  if (typeof ttl === 'number') return ttl * 1000;
  const until = Date.parse(ttl);
  return Number.isNaN(until) ? 0 : until - wallTime;
}

/** Whether an entry, loaded within the secondary's maximum lag, may be newer than the secondary's answer. */
export function isNewerThanSecondary(
  entry: Entry,
  requestedAt: number,
  { secondaryMaxTtlMs = 0 }: TtlBounds,
): boolean {
  return requestedAt - entry.requestedAt < secondaryMaxTtlMs;
}

/** `stale`: usable while the upstream fails or is slow. `none`: unusable. */
export type EntryState = 'fresh' | 'stale' | 'none';

/**
 * Whether an entry, or a response prepared from it, is fresh. An entry from before `trustedSince` may have
 * missed an invalidation. The age of an entry from the future is unknown.
 */
export const isFresh = ({ requestedAt, staleAt }: Times, now: number, trustedSince: number): boolean =>
  requestedAt <= now && now < staleAt && requestedAt >= trustedSince;

/** Judges the freshness of an entry from any tier. */
export function judge(entry: Entry | undefined, now: number, trustedSince = 0): EntryState {
  if (entry === undefined || now >= entry.deleteAt) return 'none';
  return isFresh(entry, now, trustedSince) ? 'fresh' : 'stale';
}

/** Whether less than a tenth of the TTL is left. An entry with enough hits is then refreshed ahead. */
export const isNearEnd = ({ requestedAt, staleAt }: Times, now: number): boolean =>
  staleAt - now < (staleAt - requestedAt) / 10;
