// Limits the requests of one client address per minute.
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../errors.js';
import { type IsTrustedProxy, clientAddress, networkOf } from './client-address.js';
import type { Listener } from '../http/guard.js';

/** The requests counted in the current window, and the rest of the window. */
interface RequestCount {
  count: number;
  leftMs: number;
}

interface RateLimitDeps {
  perMinute: number;
  /** Counts one request more. */
  count: (name: string, limit: number) => RequestCount | Promise<RequestCount>;
  isTrusted: IsTrustedProxy;
  onLimited: () => void;
}

export interface RateLimit {
  /** Counts a request before it is answered; hits count like others. */
  wrap: (listener: Listener) => Listener;
  /** The refusal of a request above the limit. */
  refusalOf: (req: IncomingMessage) => ServiceError | undefined;
}

/**
 * Not express-rate-limit: most requests never enter Express. A request above the limit does, so that it is refused in
 * the form of its interface, with CORS headers and a line in the log.
 */
export function createRateLimit({ perMinute, count, isTrusted, onLimited }: RateLimitDeps): RateLimit {
  const refused = new WeakMap<IncomingMessage, ServiceError>();

  function check(req: IncomingMessage, { count: requests, leftMs }: RequestCount): void {
    if (requests <= perMinute) return;
    onLimited();
    const detail = `at most ${perMinute} in a minute`;
    refused.set(req, new ServiceError('RATE_LIMITED', { detail, retryAfterMs: leftMs }));
  }

  return {
    wrap: (listener) => (req, res) => {
      const counted = count(networkOf(clientAddress(req, isTrusted)), perMinute);
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
  };
}
