// The client for reads that callers share: reads from the primary, or from a mirror that works.
import { ServiceError } from '../errors.js';
import { recordKey } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import type { Caller } from './caller.js';
import type { BreakerOptions, BreakerState } from './circuit-breaker.js';
import {
  type LimiterOptions,
  type LimiterUsage,
  ConcurrencyLimiter,
  sumUsages,
} from './concurrency-limiter.js';
import { ExpiringMap } from './expiring-map.js';
import { scopeOf } from './failure.js';
import type { ReportHealth } from './server-health.js';
import { createServerSelection } from './server-selection.js';
import { type ServerOptions, type UpstreamServer, createServer } from './upstream-server.js';

export interface UpstreamClientOptions extends Omit<ServerOptions, 'limiter' | 'breaker' | 'onHealth'> {
  onHealth?: ((url: string, ...change: Parameters<ReportHealth>) => void) | undefined;
  breaker: Omit<BreakerOptions, 'onStateChange'> & {
    onStateChange?: ((state: BreakerState, url: string) => void) | undefined;
  };
  /** Servers with the same handles, for ordinary reads when the primary fails. */
  mirrors: readonly string[];
  timeoutMs: number;
  /** Time limit of one server while there is another to try. */
  failoverAfterMs: number;
  /** For this time after a failure a server is tried last, and a handle is not requested. */
  retryAfterMs: number;
  /** For this time after a write a mirror may still have the old record. */
  mirrorLagMs: number;
  /** For each server. */
  limiter: LimiterOptions;
}

export interface HandleRead {
  handle: string;
  authoritative: boolean;
  /** By default a normal client that is not known. */
  caller?: Caller | undefined;
  /** Whether a referral is not followed. */
  isUnreferred?: boolean | undefined;
}

export interface UpstreamClient {
  /** @throws ServiceError UPSTREAM_* or OVERLOADED */
  resolve: (read: HandleRead) => Promise<Outcome>;
  /** The handle under this key was or is being written. */
  detachLoads: (key: string) => void;
  /** Nothing that is remembered of handles under this prefix counts any more. */
  detachLoadsUnder: (prefix: string) => void;
  /** Of all servers together. */
  usage: () => LimiterUsage;
}

const MAX_WRITTEN = 100_000;

export function createUpstreamClient(options: UpstreamClientOptions): UpstreamClient {
  const { mirrors, timeoutMs, failoverAfterMs, retryAfterMs, caseSensitive, now } = options;
  const limiters: ConcurrencyLimiter[] = [];
  const open = (url: string): UpstreamServer => {
    const limiter = new ConcurrencyLimiter(options.limiter);
    limiters.push(limiter);
    const onHealth: ReportHealth = (...change) => options.onHealth?.(url, ...change);
    return createServer({ ...options, url, limiter, breaker: breakerFor(options, url), onHealth });
  };
  const primary = open(options.url);
  const servers = [primary, ...mirrors.map(open)];
  const selection = createServerSelection({ servers, avoidMs: retryAfterMs, now });
  const failures = createFailureMemory({ ttlMs: retryAfterMs, now });
  const written = new ExpiringMap<true>({ ttlMs: options.mirrorLagMs, maxEntries: MAX_WRITTEN, now });

  async function readWithFailover(read: HandleRead): Promise<Outcome> {
    const deadline = performance.now() + timeoutMs;
    const failed: ServiceError[] = [];
    const order = selection.order();
    for (const [at, server] of order.entries()) {
      const leftMs = deadline - performance.now();
      const limitMs = at === order.length - 1 ? leftMs : Math.min(leftMs, failoverAfterMs);
      if (limitMs <= 0) break;
      try {
        const outcome = await server.read({ ...read, timeoutMs: limitMs });
        selection.succeeded(server);
        return server === primary ? outcome : { ...outcome, isFromMirror: true };
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        // A failure for one record means nothing for the others.
        if (scopeOf(error) !== 'record') selection.failed(server);
        failed.push(error);
      }
    }
    throw mostSpecific(failed);
  }

  return {
    async resolve(read) {
      const { handle, authoritative } = read;
      // Servers fold these two out of a path even when percent-encoded. They have no prefix, so they cannot exist.
      if (handle === '.' || handle === '..') return { kind: 'not-found' };
      const key = recordKey(handle, caseSensitive);
      if (!authoritative) failures.assertNone(key);
      // Only the primary is authoritative. A mirror would undo a write that was acknowledged.
      const isForPrimary = authoritative || mirrors.length === 0 || written.has(key);
      try {
        const outcome = await (isForPrimary ? primary.read({ ...read, timeoutMs }) : readWithFailover(read));
        failures.forget(key);
        return outcome;
      } catch (error) {
        failures.observe(key, error);
        throw error;
      }
    },
    detachLoads(key) {
      failures.forget(key);
      if (mirrors.length > 0) written.set(key, true);
    },
    detachLoadsUnder: failures.forgetUnder,
    usage: () => sumUsages(limiters.map((limiter) => limiter.usage())),
  };
}

function breakerFor({ breaker }: UpstreamClientOptions, url: string): BreakerOptions {
  return { ...breaker, onStateChange: (state) => breaker.onStateChange?.(state, url) };
}

/** A response or an error of a server explains more than that it was not contacted. */
function mostSpecific(failed: readonly ServiceError[]): ServiceError {
  const contacted = failed.find(({ code }) => code !== 'UPSTREAM_RESTING' && code !== 'OVERLOADED');
  return contacted ?? failed[0] ?? new ServiceError('UPSTREAM_TIMEOUT');
}

const MAX_FAILURES = 10_000;

/**
 * Negative cache of failures: a handle for which the server failed a moment ago is not requested again so soon (RFC 9520
 * §3.2 has the same for DNS resolvers). Every caller gets the failure; the server gets one request.
 */
function createFailureMemory(options: { ttlMs: number; now: () => number }) {
  const failures = new ExpiringMap<ServiceError>({ ...options, maxEntries: MAX_FAILURES });
  return {
    /** @throws ServiceError the failure that is remembered for a key */
    assertNone(key: string): void {
      const failure = failures.get(key);
      if (failure) throw failure;
    },
    /** Remembers what a load has failed with. */
    observe(key: string, error: unknown): void {
      if (error instanceof ServiceError && isOfHandle(error)) failures.set(key, withinBounds(error));
    },
    forget(key: string): void {
      failures.delete(key);
    },
    forgetUnder: (prefix: string): void => {
      failures.deleteUnder(prefix);
    },
  };
}

/** A server that cannot be reached, or is busy, is the breaker's matter. */
const NOT_OF_HANDLE: readonly unknown[] = ['UPSTREAM_RESTING', 'UPSTREAM_BUSY', 'OVERLOADED'];

const isOfHandle = (failure: ServiceError): boolean =>
  !NOT_OF_HANDLE.includes(failure.code) && scopeOf(failure) !== 'connection';

/** No more of the server's own answer is kept than a message. */
const MAX_ANSWER_CHARS = 4096;

function withinBounds(failure: ServiceError): ServiceError {
  const { code, message, upstreamAnswer } = failure;
  const isShort = JSON.stringify(upstreamAnswer?.members ?? {}).length <= MAX_ANSWER_CHARS;
  return isShort ? failure : new ServiceError(code, { message });
}
