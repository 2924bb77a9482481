// Sends shared reads to the primary, or to a working secondary.
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { Outcome } from '../handle/outcome.js';
import { type LimiterUsage, ConcurrencyLimiter, sumUsages } from './concurrency-limiter.js';
import type { HandleRead, ServerSettings, UpstreamClient } from './contract.js';
import { ExpiringMap } from './expiring-map.js';
import { scopeOf, type ServerKeys } from './failure.js';
import { inOrder } from './health.js';
import { type ServerParts, type UpstreamServer, createServer } from './upstream-server.js';

interface UpstreamClientParts extends Omit<ServerParts, 'limiter' | 'keys'> {
  /** Returns the configuration keys for the server at an address. */
  keysOf: (url: string) => ServerKeys;
}

const MAX_WRITTEN = 100_000;

export function createUpstreamClient(
  settings: ServerSettings,
  context: Context,
  parts: UpstreamClientParts,
): UpstreamClient {
  const { secondaries, timeoutMs, failoverAfterMs, retryAfterMs } = settings;
  const { now } = context.clock;
  const { primary, others, usage } = openServers(settings, context, parts);
  const servers = [primary, ...others];
  // Recently written handles, for which secondaries may still return the old record.
  const written = new ExpiringMap<true>({ ttlMs: settings.secondaryMaxTtlMs, maxEntries: MAX_WRITTEN, now });

  async function readWithFailover(read: HandleRead): Promise<Outcome> {
    const deadline = performance.now() + timeoutMs;
    const failed: ServiceError[] = [];
    const order = inOrder(servers, retryAfterMs);
    for (const [at, server] of order.entries()) {
      const leftMs = deadline - performance.now();
      const limitMs = at === order.length - 1 ? leftMs : Math.min(leftMs, failoverAfterMs);
      if (limitMs <= 0) break;
      try {
        const outcome = await server.read({ ...read, timeoutMs: limitMs });
        return server === primary ? outcome : { ...outcome, isFromSecondary: true };
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        // A single failing record does not affect reads of other handles.
        if (scopeOf(error) !== 'record') server.health.avoid(retryAfterMs);
        failed.push(error);
      }
    }
    throw mostSpecific(failed);
  }

  return {
    resolve(read) {
      const { handle, authoritative, caller } = read;
      const { text, key } = handle;
      // Servers resolve these dot segments even when percent-encoded; a handle without a prefix cannot exist.
      if (text === '.' || text === '..') return Promise.resolve({ kind: 'not-found' });
      // Only the primary is authoritative; a secondary could return the record from before
      // an acknowledged write.
      const isForPrimary = authoritative || secondaries.length === 0 || written.has(key);
      return isForPrimary
        ? primary.read({ handle, authoritative, caller, timeoutMs })
        : readWithFailover(read);
    },
    preferPrimary(key) {
      if (secondaries.length > 0) written.set(key, true);
    },
    usage,
  };
}

/** Opens the primary and its secondaries, each with its own limiter. */
function openServers(
  settings: ServerSettings,
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
