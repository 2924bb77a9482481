// The pause after a 429 or 503 with Retry-After (RFC 9110 §10.2.3).
import { ServiceError } from '../errors.js';
import { type UpstreamResponse, headerOf } from './response.js';

interface PauseOptions {
  /** A server must not be able to turn itself off for a day by mistake. */
  maxPauseMs: number;
  now: () => number;
}

interface RetryAfterPause {
  /** Starts a pause when a response requests one; returns its length (ms). */
  observe: (response: Omit<UpstreamResponse, 'body'>) => number | undefined;
  /** @throws ServiceError UPSTREAM_RESTING during a pause */
  assertOver: () => void;
}

/** RFC 6585 §4, RFC 9110 §15.6.4 */
export const isTooBusy = (status: number): boolean => status === 429 || status === 503;

export function createRetryAfterPause({ maxPauseMs, now }: PauseOptions): RetryAfterPause {
  let endsAt = 0;
  return {
    observe(response) {
      if (!isTooBusy(response.status)) return undefined;
      const startedAt = now();
      const requestedMs = parseRetryAfter(headerOf(response, 'retry-after'), startedAt);
      if (requestedMs === undefined) return undefined;
      const pauseMs = Math.min(requestedMs, maxPauseMs);
      endsAt = startedAt + pauseMs;
      return pauseMs;
    },
    assertOver() {
      const leftMs = endsAt - now();
      if (leftMs <= 0) return;
      const diagnosis = { cause: 'the server requested a pause (Retry-After)' };
      throw new ServiceError('UPSTREAM_RESTING', { diagnosis, retryAfterMs: leftMs });
    },
  };
}

/** Milliseconds of a Retry-After header, in seconds or as a date; undefined when it is invalid. */
function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse accepts a lot more than an HTTP date, but none of it begins like one.
  const until = /^[A-Z][a-z]+,/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(until) ? undefined : Math.max(0, until - now);
}
