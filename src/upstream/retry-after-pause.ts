// The rest that a Handle server itself asks for: 429 or 503 with Retry-After (RFC 9110 §10.2.3).
import { ServiceError } from '../errors.js';
import { retryAfterMs } from './retry-after.js';

export interface RestOptions {
  /** Most that is obeyed: a server must not be able to switch itself off for a day by a slip. */
  maxRestMs: number;
  now: () => number;
}

export interface Rest {
  /** Looks whether an answer asks for rest, and tells how much it gets (ms). */
  heed: (answer: { status: number; headers: Pick<Headers, 'get'> }) => number | undefined;
  /** @throws ServiceError UPSTREAM_RESTING while the rest lasts */
  demandOver: () => void;
}

/** Statuses with which a server says that it is too much for it. */
export const isTooBusy = (status: number): boolean => status === 429 || status === 503;

export function createRest({ maxRestMs, now }: RestOptions): Rest {
  let until = 0;
  return {
    heed({ status, headers }) {
      if (!isTooBusy(status)) return undefined;
      const at = now();
      const asked = retryAfterMs(headers.get('retry-after'), at);
      if (asked === undefined) return undefined;
      const given = Math.min(asked, maxRestMs);
      until = at + given;
      return given;
    },
    demandOver() {
      const leftMs = until - now();
      if (leftMs <= 0) return;
      const detail = 'it asked for that (Retry-After)';
      throw new ServiceError('UPSTREAM_RESTING', { detail, retryAfterMs: leftMs });
    },
  };
}
