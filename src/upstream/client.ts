// The client for reads that callers share: reads from the primary, or from a mirror that works.
import type { Config } from '../config/schema.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import type { Caller } from './caller.js';
import { type LimiterUsage, ConcurrencyLimiter, sumUsages } from './concurrency-limiter.js';
import { ExpiringMap } from './expiring-map.js';
import { scopeOf, type ServerKeys } from './failure.js';
import {
  type ServerParts,
  type ServerSettings,
  type UpstreamServer,
  createServer,
} from './upstream-server.js';

export interface UpstreamClientSettings
  extends
    ServerSettings,
    Pick<
      ServerConfig,
      | 'mirrors'
      | 'timeoutMs'
      | 'failoverAfterMs'
      | 'concurrency'
      | 'minConcurrency'
      | 'queue'
      | 'queueTimeoutMs'
    >,
    Pick<Config['upstream'], 'retryAfterMs' | 'mirrorMaxTtlMs'> {}

interface UpstreamClientParts extends Omit<ServerParts, 'limiter' | 'keys'> {
  /** The configuration keys of the server at an address. */
  keysOf: (url: string) => ServerKeys;
}

export interface HandleRead {
  handle: HandleRef;
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

export function createUpstreamClient(
  settings: UpstreamClientSettings,
  context: Context,
  parts: UpstreamClientParts,
): UpstreamClient {
  const { mirrors, timeoutMs, failoverAfterMs, retryAfterMs } = settings;
  const { now } = context.clock;
  const { primary, others, usage } = openServers(settings, context, parts);
  const selection = createServerSelection({ servers: [primary, ...others], avoidMs: retryAfterMs, now });
  const failures = createFailureMemory({ ttlMs: retryAfterMs, now });
  // For this time after a write a mirror may still have the old record.
  const written = new ExpiringMap<true>({ ttlMs: settings.mirrorMaxTtlMs, maxEntries: MAX_WRITTEN, now });

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
      const {
        handle: { text, key },
        authoritative,
      } = read;
      // Servers fold these two out of a path even when percent-encoded. They have no prefix, so they cannot exist.
      if (text === '.' || text === '..') return { kind: 'not-found' };
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
    usage,
  };
}

/** The primary and its mirrors, each with a limiter of its own. */
function openServers(
  settings: UpstreamClientSettings,
  context: Context,
  { keysOf, ...parts }: UpstreamClientParts,
): { primary: UpstreamServer; others: UpstreamServer[]; usage: UpstreamClient['usage'] } {
  const { url: primaryUrl, mirrors } = settings;
  const limiters: ConcurrencyLimiter[] = [];
  const onRejected = (): void => {
    context.metrics.countRejected({ server: primaryUrl, kind: 'read' });
  };
  const open = (url: string): UpstreamServer => {
    const limiter = new ConcurrencyLimiter({ ...settings, onRejected });
    limiters.push(limiter);
    return createServer({ ...settings, url }, context, { ...parts, limiter, keys: keysOf(url) });
  };
  const usage = (): LimiterUsage => sumUsages(limiters.map((limiter) => limiter.usage()));
  return { primary: open(primaryUrl), others: mirrors.map(open), usage };
}

/** A response or an error of a server explains more than that it was not contacted. */
function mostSpecific(failed: readonly ServiceError[]): ServiceError {
  const contacted = failed.find(({ code }) => code !== 'UPSTREAM_BACKOFF' && code !== 'OVERLOADED');
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
const NOT_OF_HANDLE: readonly unknown[] = ['UPSTREAM_BACKOFF', 'UPSTREAM_BUSY', 'OVERLOADED'];

const isOfHandle = (failure: ServiceError): boolean =>
  !NOT_OF_HANDLE.includes(failure.code) && scopeOf(failure) !== 'connection';

/** No more of the server's own answer is kept than a message. */
const MAX_ANSWER_CHARS = 4096;

function withinBounds(failure: ServiceError): ServiceError {
  const { code, message, upstreamAnswer } = failure;
  const isShort = JSON.stringify(upstreamAnswer?.members ?? {}).length <= MAX_ANSWER_CHARS;
  return isShort ? failure : new ServiceError(code, { message });
}

interface ServerSelectionOptions<Server> {
  /** The primary, then the mirrors, in the order in which they are preferred. */
  servers: readonly Server[];
  /** A server that failed is tried last for this time. */
  avoidMs: number;
  now: () => number;
}

interface ServerSelection<Server> {
  /** All servers, avoided ones last. */
  order: () => Server[];
  succeeded: (server: Server) => void;
  failed: (server: Server) => void;
}

/**
 * When the time of a failed server is over, one read tries it again. That read renews the time, so that others do not
 * wait for it too.
 */
function createServerSelection<Server>(options: ServerSelectionOptions<Server>): ServerSelection<Server> {
  const { servers, avoidMs, now } = options;
  const avoidedUntil = new Map<Server, number>();

  function isGood(server: Server): boolean {
    const until = avoidedUntil.get(server);
    if (until === undefined) return true;
    if (now() < until) return false;
    avoidedUntil.set(server, now() + avoidMs);
    return true;
  }

  return {
    order() {
      const first = servers.find(isGood);
      if (first === undefined) return [...servers];
      const others = servers.filter((server) => server !== first);
      const isAvoided = (server: Server): boolean => avoidedUntil.has(server);
      return [first, ...others.filter((server) => !isAvoided(server)), ...others.filter(isAvoided)];
    },
    succeeded(server) {
      avoidedUntil.delete(server);
    },
    failed(server) {
      avoidedUntil.set(server, now() + avoidMs);
    },
  };
}
