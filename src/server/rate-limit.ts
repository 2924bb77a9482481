// An upper bound for the requests of one client address in a minute.
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../errors.js';
import { type Trusts, clientAddress, networkOf } from './client-address.js';
import type { Listener } from '../http/guard.js';

/** How often something was counted in its window, and when the window ends. */
export interface Counted {
  count: number;
  leftMs: number;
}

export interface RateLimitDeps {
  perMinute: number;
  /** Counts one more. */
  count: (name: string, limit: number) => Counted | Promise<Counted>;
  trusts: Trusts;
  onLimited: () => void;
}

export interface RateLimit {
  /** Counts a request before it is answered; hits count like others. */
  before: (listener: Listener) => Listener;
  /** The refusal of a request that was one too many. */
  refusalOf: (req: IncomingMessage) => ServiceError | undefined;
}

/**
 * Not express-rate-limit: most requests never enter Express. One too many goes the long way, so that it
 * is refused in the form of its interface, with CORS headers and a line in the log.
 */
export function createRateLimit({ perMinute, count, trusts, onLimited }: RateLimitDeps): RateLimit {
  const refused = new WeakMap<IncomingMessage, ServiceError>();

  function judge(req: IncomingMessage, { count: made, leftMs }: Counted): void {
    if (made <= perMinute) return;
    onLimited();
    const detail = `at most ${perMinute} in a minute`;
    refused.set(req, new ServiceError('RATE_LIMITED', { detail, retryAfterMs: leftMs }));
  }

  return {
    before: (listener) => (req, res) => {
      const counted = count(networkOf(clientAddress(req, trusts)), perMinute);
      if (!(counted instanceof Promise)) {
        judge(req, counted);
        return listener(req, res);
      }
      return counted.then((made) => {
        judge(req, made);
        return listener(req, res);
      });
    },
    refusalOf: (req) => refused.get(req),
  };
}
