// Sends shared reads to the primary, or to a working secondary.
import type { Config } from '../config/schema.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { Outcome } from '../handle/outcome.js';
import { type LimiterUsage, ConcurrencyLimiter, sumUsages } from './concurrency-limiter.js';
import type { HandleRead, UpstreamClient } from './contract.js';
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
      | 'secondaries'
      | 'timeoutMs'
      | 'failoverAfterMs'
      | 'concurrency'
      | 'minConcurrency'
      | 'queue'
      | 'queueTimeoutMs'
    >,
    Pick<Config['upstream'], 'retryAfterMs' | 'secondaryMaxTtlMs'> {}

interface UpstreamClientParts extends Omit<ServerParts, 'limiter' | 'keys'> {
  /** Returns the configuration keys for the server at an address. */
  keysOf: (url: string) => ServerKeys;
}

const MAX_WRITTEN = 100_000;

export function createUpstreamClient(
  settings: UpstreamClientSettings,
  context: Context,
  parts: UpstreamClientParts,
): UpstreamClient {
  const { secondaries, timeoutMs, failoverAfterMs, retryAfterMs } = settings;
  const { now } = context.clock;
  const { primary, others, usage } = openServers(settings, context, parts);
  const selection = createServerSelection({ servers: [primary, ...others], avoidMs: retryAfterMs, now });
  const failures = createFailureMemory({ ttlMs: retryAfterMs, now });
  // Recently written handles, for which secondaries may still return the old record.
  const written = new ExpiringMap<true>({ ttlMs: settings.secondaryMaxTtlMs, maxEntries: MAX_WRITTEN, now });

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
        return server === primary ? outcome : { ...outcome, isFromSecondary: true };
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        // A single failing record does not affect reads of other handles.
        if (scopeOf(error) !== 'record') selection.failed(server);
        failed.push(error);
      }
    }
    throw mostSpecific(failed);
  }

  return {
    async resolve(read) {
      const { handle, authoritative, caller } = read;
      const { text, key } = handle;
      // Servers resolve these dot segments even when percent-encoded; a handle without a prefix cannot exist.
      if (text === '.' || text === '..') return { kind: 'not-found' };
      if (!authoritative) failures.assertNone(key);
      // Only the primary is authoritative; a secondary could return the record from before
      // an acknowledged write.
      const isForPrimary = authoritative || secondaries.length === 0 || written.has(key);
      try {
        const outcome = await (isForPrimary
          ? primary.read({ handle, authoritative, caller, timeoutMs })
          : readWithFailover(read));
        failures.forget(key);
        return outcome;
      } catch (error) {
        failures.observe(key, error);
        throw error;
      }
    },
    detachLoads(key) {
      failures.forget(key);
      if (secondaries.length > 0) written.set(key, true);
    },
    detachLoadsUnder: failures.forgetUnder,
    usage,
  };
}

/** Opens the primary and its secondaries, each with its own limiter. */
function openServers(
  settings: UpstreamClientSettings,
  context: Context,
  { keysOf, ...parts }: UpstreamClientParts,
): { primary: UpstreamServer; others: UpstreamServer[]; usage: UpstreamClient['usage'] } {
  const { url: primaryUrl, secondaries } = settings;
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
  return { primary: open(primaryUrl), others: secondaries.map(open), usage };
}

/** Prefers an error from a contacted server to a local rejection. */
function mostSpecific(failed: readonly ServiceError[]): ServiceError {
  const contacted = failed.find(({ code }) => code !== 'UPSTREAM_BACKOFF' && code !== 'OVERLOADED');
  return contacted ?? failed[0] ?? new ServiceError('UPSTREAM_TIMEOUT');
}

const MAX_FAILURES = 10_000;

/**
 * Creates the failure cache, as in DNS resolvers (RFC 9520 §3.2). After a failure, all callers get the cached
 * error, and the server is not queried for the handle until the TTL expires.
 */
function createFailureMemory(options: { ttlMs: number; now: () => number }) {
  const failures = new ExpiringMap<ServiceError>({ ...options, maxEntries: MAX_FAILURES });
  return {
    /** @throws ServiceError the cached failure for a key */
    assertNone(key: string): void {
      const failure = failures.get(key);
      if (failure) throw failure;
    },
    /** Caches the failure of a load. */
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

/** Errors that say nothing about the handle: a busy or paused server, or this proxy's own limits. */
const NOT_OF_HANDLE: readonly unknown[] = ['UPSTREAM_BACKOFF', 'UPSTREAM_BUSY', 'OVERLOADED'];

const isOfHandle = (failure: ServiceError): boolean =>
  !NOT_OF_HANDLE.includes(failure.code) && scopeOf(failure) !== 'connection';

/** Maximum length of cached error members; longer ones are dropped from the cached error. */
const MAX_ANSWER_CHARS = 4096;

function withinBounds(failure: ServiceError): ServiceError {
  const { code, message, upstreamAnswer } = failure;
  const isShort = JSON.stringify(upstreamAnswer?.members ?? {}).length <= MAX_ANSWER_CHARS;
  return isShort ? failure : new ServiceError(code, { message });
}

interface ServerSelectionOptions<Server> {
  /** The primary, then the secondaries in order of preference. */
  servers: readonly Server[];
  /** Period for which a failed server is tried last (ms). */
  avoidMs: number;
  now: () => number;
}

interface ServerSelection<Server> {
  /** Returns all servers, avoided ones last. */
  order: () => Server[];
  succeeded: (server: Server) => void;
  failed: (server: Server) => void;
}

/**
 * Avoids failed servers. After `avoidMs`, one read retries the server and starts the period again, so that
 * other reads do not wait for that server.
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
