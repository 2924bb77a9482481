// One Handle server as the client sees it: asked for one handle, anonymously, and left alone when it has to be.
import { type ErrorCode, ServiceError } from '../errors.js';
import { handleToPath, recordKey } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import { type BreakerOptions, type BreakerState, CircuitBreaker } from './circuit-breaker.js';
import { toServiceError } from './failure.js';
import type { Gate } from './concurrency-limiter.js';
import { get, readOrigin } from './get.js';
import type { ReadAgentsByProtocol } from './read-agents.js';
import { readReply } from './reply.js';
import { createRest } from './retry-after-pause.js';
import { retryOnFresh } from './retry.js';
import { type Limit, withTimeLimit } from './time-limit.js';

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
  reads: ReadAgentsByProtocol;
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
  const { gate, maxBodyBytes, caseSensitive } = options;
  const origin = readOrigin(options.url);
  const agents = options.reads[origin.protocol];
  const breaker = new CircuitBreaker(options.breaker);
  const rest = createRest(options);
  // Everything that is sent. Nothing of the caller's: many callers share the answer.
  const headers = [
    ...['Host', origin.host],
    ...['Accept', 'application/json'],
    // A record is small and its server near: packing and unpacking it took a tenth of a busy proxy's time.
    ...['Accept-Encoding', 'identity'],
    ...['User-Agent', 'handle-resolver-proxy'],
    ...['Via', `1.1 ${options.pseudonym}`],
  ];
  // An agent that keeps nothing but has a bound says `keep-alive` all the same.
  const closing = [...headers, 'Connection', 'close'];

  async function ask(question: ServerQuestion): Promise<Outcome> {
    const { handle, authoritative, timeoutMs, signal } = question;
    const path = `${origin.path}/api/handles/${handleToPath(handle)}${authoritative ? '?auth=true' : ''}`;
    const key = recordKey(handle, caseSensitive);
    rest.demandOver();
    const deadline = performance.now() + timeoutMs;
    return gate.run(() => {
      // Whoever waited for a turn may learn only now that the server wants to be left alone.
      rest.demandOver();
      return breaker.run(key, (isTrial) => {
        // A trial goes on without its caller: others wait for what it finds.
        const leftMs = Math.max(1, deadline - performance.now());
        const limits = { timeoutMs: leftMs, signal: isTrial ? undefined : signal };
        return observed(options, (tries) =>
          withTimeLimit(limits, (limit) =>
            retryOnFresh((fresh) => send({ path, handle, fresh, limit, tries })),
          ),
        );
      });
    }, key);
  }

  async function send({ path, handle, fresh, limit, tries }: Try): Promise<Outcome> {
    tries.count++;
    const how = fresh ? { agent: agents.fresh, headers: closing } : { agent: agents.kept, headers };
    const reply = await get({ origin, path, ...how, maxBodyBytes, limit }).catch((error: unknown) => {
      // A caller who has left is no failure of the server.
      throw error === limit.reason ? error : toServiceError(error);
    });
    return readReply({ ...reply, handle, caseSensitive, restMs: rest.heed(reply) });
  }

  return { ask, breakerState: () => breaker.state };
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
  path: string;
  handle: string;
  fresh: boolean;
  limit: Limit;
  tries: Tries;
}
