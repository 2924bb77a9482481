// Limits the requests of one client address per minute.
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../errors.js';
import { type IsTrustedProxy, clientAddress, networkOf } from './client-address.js';
import type { Listener } from '../http/guard.js';

/** The requests in the current window, and the rest of the window. */
interface RequestCount {
  /** Above the limit when they did not fit. */
  count: number;
  leftMs: number;
}

interface RateLimitDeps {
  perMinute: number;
  /** Counts so many requests more, if they fit under the limit. */
  count: (name: string, addition: { limit: number; by: number }) => RequestCount | Promise<RequestCount>;
  isTrusted: IsTrustedProxy;
  onLimited: () => void;
}

export interface RateLimit {
  /** Counts a request before it is answered; hits count like others. */
  wrap: (listener: Listener) => Listener;
  /** The refusal of a request above the limit. */
  refusalOf: (req: IncomingMessage) => ServiceError | undefined;
  /** Counts a request that stands for many as so many more. @throws ServiceError RATE_LIMITED */
  charge: (req: IncomingMessage, more: number) => Promise<void>;
}

/**
 * Not express-rate-limit: most requests never enter Express. A request above the limit does, so that it is refused in
 * the form of its interface, with CORS headers and a line in the log.
 */
export function createRateLimit({ perMinute, count, isTrusted, onLimited }: RateLimitDeps): RateLimit {
  const refused = new WeakMap<IncomingMessage, ServiceError>();
  const countFor = (req: IncomingMessage, by: number): RequestCount | Promise<RequestCount> =>
    count(networkOf(clientAddress(req, isTrusted)), { limit: perMinute, by });

  function judge({ count: requests, leftMs }: RequestCount): ServiceError | undefined {
    if (requests <= perMinute) return undefined;
    onLimited();
    return new ServiceError('RATE_LIMITED', {
      detail: `at most ${perMinute} in a minute`,
      retryAfterMs: leftMs,
    });
  }

  function check(req: IncomingMessage, counted: RequestCount): void {
    const refusal = judge(counted);
    if (refusal !== undefined) refused.set(req, refusal);
  }

  return {
    wrap: (listener) => (req, res) => {
      const counted = countFor(req, 1);
      if (!(counted instanceof Promise)) {
        check(req, counted);
        return listener(req, res);
      }
      return counted.then((later) => {
        check(req, later);
        return listener(req, res);
      });
    },
    refusalOf: (req) => refused.get(req),
    async charge(req, more) {
      const refusal = judge(await countFor(req, more));
      if (refusal !== undefined) throw refusal;
    },
  };
}
