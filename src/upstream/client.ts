// The only client of the Handle servers for what all callers share: asks the primary, or a mirror that works.
import { ServiceError } from '../errors.js';
import { recordKey } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import type { BreakerOptions, BreakerState } from './circuit-breaker.js';
import { FailedHandles } from './failed-handles.js';
import { createFailover } from './server-selection.js';
import { scopeOf } from './failure.js';
import { type Gate, type GateOptions, type GateUse, createGate } from './concurrency-limiter.js';
import { RecentlyWritten } from './recently-written.js';
import { type Asked, type HandleServer, type ServerOptions, createServer } from './upstream-server.js';
import { untilAborted } from './time-limit.js';

export type { Asked };

export interface UpstreamClientOptions extends Omit<ServerOptions, 'gate' | 'breaker' | 'maxRestMs'> {
  breaker: Omit<BreakerOptions, 'onBreaker'> & {
    onBreaker?: ((state: BreakerState, url: string) => void) | undefined;
  };
  /** Servers with the same handles, for ordinary reads when the primary fails. */
  mirrors?: readonly string[];
  timeoutMs: number;
  /** How long one server may take while there is another to ask. */
  failoverAfterMs?: number;
  /** How long a server that failed is asked last, and a handle that failed not at all. */
  retryAfterMs?: number;
  maxRestMs?: number;
  /** How long a mirror may not know of a write. */
  mirrorLagMs?: number;
  /** For each server. */
  gate?: GateOptions;
}

export interface Question {
  handle: string;
  authoritative: boolean;
  signal?: AbortSignal | undefined;
}

export interface UpstreamClient {
  /** @throws ServiceError UPSTREAM_* or OVERLOADED, or the reason of the signal */
  resolve(question: Question): Promise<Outcome>;
  /** The handle under this key was or is being written. */
  letGo(key: string): void;
  /** Nothing that is remembered of such handles counts any more. */
  letGoAll(prefix: string): void;
  /** Of the primary. */
  breakerState(): BreakerState;
  /** Of all servers together. */
  use(): GateUse;
}

const DEFAULTS = { failoverAfterMs: 3000, retryAfterMs: 5000, maxRestMs: 60_000, mirrorLagMs: 60_000 };
const WIDE_GATE: GateOptions = { concurrency: 64, queue: 1000, waitMs: 2000 };

export function createUpstreamClient(given: UpstreamClientOptions): UpstreamClient {
  const options = { ...DEFAULTS, ...given };
  const { mirrors = [], timeoutMs, failoverAfterMs, retryAfterMs, caseSensitive, now } = options;
  const gates: Gate[] = [];
  const open = (url: string): HandleServer => {
    const gate = createGate(options.gate ?? WIDE_GATE);
    gates.push(gate);
    return createServer({ ...options, url, gate, breaker: breakerOf(options, url) });
  };
  const primary = open(options.url);
  const servers = [primary, ...mirrors.map(open)];
  const failover = createFailover({ servers, avoidMs: retryAfterMs, now });
  const failedHandles = new FailedHandles(retryAfterMs, now);
  const written = new RecentlyWritten(options.mirrorLagMs, now);

  /** Design decision 3: only the primary is authoritative. A mirror would undo a write that was acknowledged. */
  const isForPrimary = ({ handle, authoritative }: Question): boolean =>
    authoritative || mirrors.length === 0 || written.has(recordKey(handle, caseSensitive));

  async function answer(question: Question): Promise<Outcome> {
    if (isForPrimary(question)) return primary.ask({ ...question, timeoutMs });
    const deadline = performance.now() + timeoutMs;
    const failures: ServiceError[] = [];
    const order = failover.order();
    for (const [at, server] of order.entries()) {
      const leftMs = deadline - performance.now();
      const limitMs = at === order.length - 1 ? leftMs : Math.min(leftMs, failoverAfterMs);
      if (limitMs <= 0) break;
      try {
        const outcome = await server.ask({ ...question, timeoutMs: limitMs });
        failover.worked(server);
        return server === primary ? outcome : { ...outcome, isFromMirror: true };
      } catch (error) {
        // A caller who left is no failure of the server.
        if (!(error instanceof ServiceError)) throw error;
        // One record that it cannot show says nothing about the others.
        if (scopeOf(error) !== 'record') failover.failed(server);
        failures.push(error);
      }
    }
    throw mostTelling(failures);
  }

  return {
    async resolve(question) {
      const { handle, authoritative, signal } = question;
      // WHATWG URL folds these two away even percent-encoded. They have no prefix, so nobody can own them.
      if (handle === '.' || handle === '..') return { kind: 'not-found' };
      const key = recordKey(handle, caseSensitive);
      const ask = (): Promise<Outcome> => answer(question);
      return untilAborted(failedHandles.run({ key, authoritative }, ask), signal);
    },
    letGo(key) {
      failedHandles.forget(key);
      if (mirrors.length > 0) written.add(key);
    },
    letGoAll(prefix) {
      failedHandles.forgetWhere((key) => key.startsWith(prefix));
    },
    breakerState: () => primary.breakerState(),
    use: () => useOf(gates),
  };
}

const useOf = (gates: readonly Gate[]): GateUse =>
  gates
    .map((gate) => gate.use())
    .reduce((sum, { running, waiting }) => {
      return { running: sum.running + running, waiting: sum.waiting + waiting };
    });

function breakerOf({ breaker }: UpstreamClientOptions, url: string): BreakerOptions {
  return { ...breaker, onBreaker: (state) => breaker.onBreaker?.(state, url) };
}

/** What a server said or did says more than that it is left alone. */
function mostTelling(failures: readonly ServiceError[]): ServiceError {
  const told = failures.find(({ code }) => code !== 'UPSTREAM_RESTING' && code !== 'OVERLOADED');
  return told ?? failures[0] ?? new ServiceError('UPSTREAM_TIMEOUT');
}
