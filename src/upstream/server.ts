// One Handle server as the client sees it: asked for one handle, anonymously, and left alone when it has to be.
import type { Dispatcher } from 'undici';
import { type ErrorCode, ServiceError } from '../errors.js';
import { handleToPath } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import { readBody } from './body.js';
import { toServiceError } from './failure.js';
import type { Gate } from './gate.js';
import { type Reply, readReply } from './reply.js';
import { type BreakerOptions, type BreakerState, createBreaker, retryOnFresh } from './resilience.js';
import { createRest } from './rest.js';
import { withTimeLimit } from './time-limit.js';

/** One question that was sent, for the metrics. */
export interface Asked {
  result: Outcome['kind'] | ErrorCode | 'aborted';
  durationMs: number;
  retried: boolean;
}

export interface ServerOptions {
  url: string;
  /** Our own name in `Via` (RFC 9110 §7.6.3): coming back to us it means a loop. */
  pseudonym: string;
  maxBodyBytes: number;
  caseSensitive: boolean;
  dispatcher: Dispatcher;
  freshDispatcher: Dispatcher;
  breaker: BreakerOptions;
  gate: Gate;
  /** Most that a Retry-After of the server is obeyed. */
  maxRestMs: number;
  onAnswer?: ((asked: Asked) => void) | undefined;
  now: () => number;
}

export interface ServerQuestion {
  handle: string;
  authoritative: boolean;
  /** For everything from the wait for a turn to the last byte, a second try included. */
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

export interface HandleServer {
  /** @throws ServiceError UPSTREAM_*, OVERLOADED, or an AbortError */
  ask: (question: ServerQuestion) => Promise<Outcome>;
  breakerState: () => BreakerState;
}

export function createServer(options: ServerOptions): HandleServer {
  const { gate, maxBodyBytes, caseSensitive, dispatcher, freshDispatcher } = options;
  const handles = `${options.url.replace(/\/+$/, '')}/api/handles/`;
  const breaker = createBreaker(options.breaker);
  const rest = createRest(options);
  // Everything that is sent. Nothing of the caller's: many callers share the answer.
  const headers = {
    accept: 'application/json',
    // A record is small and its server near: packing and unpacking it took a tenth of a busy proxy's time.
    'accept-encoding': 'identity',
    'user-agent': 'handle-resolver-proxy',
    via: `1.1 ${options.pseudonym}`,
  };

  async function ask(question: ServerQuestion): Promise<Outcome> {
    const { handle, authoritative, timeoutMs, signal } = question;
    const url = handles + handleToPath(handle) + (authoritative ? '?auth=true' : '');
    rest.demandOver();
    const deadline = performance.now() + timeoutMs;
    return gate.run(() => {
      // Whoever waited for a turn may learn only now that the server wants to be left alone.
      rest.demandOver();
      return breaker.run((isProbe) => {
        // A probe goes on without its caller: others wait for what it finds.
        const leftMs = Math.max(1, deadline - performance.now());
        const limits = { timeoutMs: leftMs, signal: isProbe ? undefined : signal };
        return observed(options, (tries) =>
          withTimeLimit(limits, (limit) =>
            retryOnFresh((fresh) => send({ url, handle, fresh, limit, tries })),
          ),
        );
      });
    });
  }

  async function send({ url, handle, fresh, limit, tries }: Try): Promise<Outcome> {
    tries.count++;
    // The types of npm's undici and of the bundled one differ; at run time either dispatcher will do.
    const init = {
      headers,
      redirect: 'manual',
      signal: limit,
      dispatcher: fresh ? freshDispatcher : dispatcher,
    } as unknown as RequestInit;
    const reply = await readWhole(url, init).catch((error: unknown) => {
      throw toServiceError(error);
    });
    return readReply({ ...reply, handle, caseSensitive, restMs: rest.heed(reply) });
  }

  async function readWhole(
    url: string,
    init: RequestInit,
  ): Promise<Pick<Reply, 'status' | 'headers' | 'body'>> {
    const response = await globalThis.fetch(url, init);
    const body = await readBody(response, maxBodyBytes);
    return { status: response.status, headers: response.headers, body };
  }

  return { ask, breakerState: () => breaker.state() };
}

/** Does the work and says what came of it. */
async function observed(
  { now, onAnswer }: Pick<ServerOptions, 'now' | 'onAnswer'>,
  work: (tries: Tries) => Promise<Outcome>,
): Promise<Outcome> {
  const begunAt = now();
  const tries = { count: 0 };
  let result: Asked['result'] = 'aborted';
  try {
    const outcome = await work(tries);
    result = outcome.kind;
    return outcome;
  } catch (error) {
    if (error instanceof ServiceError) result = error.code;
    throw error;
  } finally {
    onAnswer?.({ result, durationMs: now() - begunAt, retried: tries.count > 1 });
  }
}

interface Tries {
  count: number;
}

interface Try {
  url: string;
  handle: string;
  fresh: boolean;
  limit: AbortSignal;
  tries: Tries;
}
