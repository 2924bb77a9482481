// Creates the clients of all servers: shared reads go to the primary or to a working secondary.
import { onceAMinute } from '../clock.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { Outcome } from '../handle/outcome.js';
import type { TimeSlicer } from '../time-slicer.js';
import { ConcurrencyLimiter, type LimiterUsage, limitLists } from './concurrency-limiter.js';
import { type createPools, createConnections, readTrust } from './connections.js';
import type {
  OriginServer,
  ServerSettings,
  UpstreamClient,
  HandleRead,
  ServerAccess,
  SourceServer,
} from './contract.js';
import { ExpiringMap } from './expiring-map.js';
import { keysAt, scopeOf, type ServerKeys } from './failure.js';
import { createForwardRequest, limitForwards } from './forwarding/forward-request.js';
import { inOrder } from './health.js';
import { createRecordClient } from './record-client.js';
import { createIsServed, createPrefixRouting, routeReads } from './routing.js';
import { sessionsOf } from './sessions.js';
import { type UpstreamServer, createServer } from './upstream-server.js';

export type Upstreams = ReturnType<typeof createUpstreams>;

/** Parts that the calls to all servers share. */
interface Outgoing {
  /** This proxy's name in `Via` (RFC 9110 §7.6.3). */
  pseudonym: string;
  slicer: TimeSlicer;
  /** Default: undici pools. */
  createDispatcher?: typeof createPools | undefined;
}

/** Creates the clients of the configured servers; `unserved` are prefixes without a server. */
export function createUpstreams(
  upstream: Config['upstream'],
  configured: readonly SourceServer[],
  unserved: readonly string[],
  context: Context,
  outgoing: Outgoing,
) {
  const { root: roots, read: aroundRead } = context.hooks;
  const { caseSensitive, retryAfterMs, secondaryMaxTtlMs } = upstream;
  const ofAll = { caseSensitive, retryAfterMs, secondaryMaxTtlMs };
  const mainUrl = findMain(configured)?.url;
  const servers = configured.map((server) =>
    createOriginServer({ ...server, ...ofAll }, context, outgoing, mainUrl),
  );
  const findServers = createPrefixRouting(servers, { roots, unserved });
  // Several servers may have the same address, for example with different timeouts.
  const addresses = [...new Set(servers.map(({ url }) => url))];
  context.metrics.registerLimitUsage(() =>
    addresses.flatMap((address) => {
      const usages = servers.filter(({ url }) => url === address).map(({ usage }) => usage());
      const sumOf = (kind: 'read' | 'forwarded') => sumUsages(usages.map(({ [kind]: used }) => used));
      return (['read', 'forwarded'] as const).map((kind) => ({ server: address, kind, ...sumOf(kind) }));
    }),
  );
  return {
    servers,
    /** For requests without a handle, such as sessions: the first writable server, else the first that takes logins. */
    main: findMain(servers),
    /** Returns the responsible servers in order of preference. */
    findServers,
    /** Whether the key has a server, here or elsewhere; false for a prefix with `kind: none`, and without any server. */
    isServed: createIsServed(configured, { roots, unserved }),
    reads: routeReads({ servers, findServers, roots, aroundRead }),
    async close(): Promise<void> {
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

const findMain = <Server extends SourceServer>(servers: readonly Server[]): Server | undefined =>
  servers.find(({ readOnly }) => !readOnly) ?? servers.find(({ source }) => source.forwards);

/** Returns the error with a Handle server's message (recording "create: prefix not homed here"). */
export const notResponsible = (): ServiceError =>
  new ServiceError('NOT_RESPONSIBLE', { message: "That prefix doesn't live here" });

/** @throws ServiceError NOT_RESPONSIBLE */
export function assertFound(server: OriginServer | undefined): OriginServer {
  if (server === undefined) throw notResponsible();
  return server;
}

/** Creates one server. `mainUrl`: address of the server that opens sessions. */
export function createOriginServer(
  settings: ServerSettings,
  context: Context,
  { createDispatcher, pseudonym, slicer }: Outgoing,
  mainUrl: string | undefined,
  keysOf = (at: string): ServerKeys => keysAt(settings, at),
): OriginServer {
  const { url, source, readOnly, concurrency, connections } = settings;
  const { dispatcher, writeAgent, close } = createConnections(
    { url, connections, ...readTrust(settings) },
    createDispatcher,
  );
  const limits = {
    ...settings,
    // Fixed, because write latency does not indicate load and list latency depends on the client.
    minConcurrency: concurrency,
    onRejected: () => context.metrics.countRejected({ server: url, kind: 'forwarded' }),
  };
  const limiter = new ConcurrencyLimiter(limits);
  const lists = new ConcurrencyLimiter(limitLists(limits));
  const access = { pseudonym, slicer, dispatcher, limiter };
  const reads = createUpstreamClient(settings, context, access, keysOf);
  const sessions = sessionsOf(url, mainUrl);
  const records = createRecordClient(settings, access, { sessions, lists });
  return {
    ...settings,
    reads,
    records,
    list: source.forwards ? records.list : source.createList(settings, access),
    forward: limitForwards(createForwardRequest(settings, { pseudonym, writeAgent, sessions }), limiter),
    checksLogins: !readOnly && url.startsWith('https:'),
    onIgnoredLogin: warnOfIgnoredLogins(url, keysOf(url), context),
    usage: () => ({ read: reads.usage(), forwarded: limiter.usage() }),
    close,
  };
}

/**
 * Returns a callback for writes whose login the server ignored; undefined over https. Startup logs no
 * warning, because a second proxy, or a port marked as secure by the operator, accepts logins over http.
 */
function warnOfIgnoredLogins(
  url: string,
  keys: ServerKeys,
  { log, clock }: Context,
): (() => void) | undefined {
  if (!url.startsWith('http:')) return undefined;
  return onceAMinute(clock, () => {
    const remedy = `set ${keys.url} to an https address`;
    log.warn({ upstream: url, remedy }, 'the Handle server ignored the login of a write');
  });
}

const MAX_WRITTEN = 100_000;
/** Each read compares its key with them. Above it, as in the list of bans, every key counts as purged. */
const MAX_PURGED = 200;

/** Creates the client of a server and its secondaries; each address has a limiter. */
export function createUpstreamClient(
  settings: ServerSettings,
  context: Context,
  access: ServerAccess,
  /** Returns the configuration keys for the server at an address. */
  keysOf: (url: string) => ServerKeys,
): UpstreamClient & { usage: () => LimiterUsage } {
  const { url: primaryUrl, secondaries, timeoutMs } = settings;
  const { now } = context.clock;
  const onRejected = (): void => context.metrics.countRejected({ server: primaryUrl, kind: 'read' });
  const open = (url: string): UpstreamServer => {
    const limiter = new ConcurrencyLimiter({ ...settings, onRejected });
    return createServer({ ...settings, url }, context, { ...access, limiter }, keysOf(url));
  };
  const primary = open(primaryUrl);
  const servers = [primary, ...secondaries.map(open)];
  // Recently written handles, for which secondaries may still return the old record.
  const written = new ExpiringMap<true>({ ttlMs: settings.secondaryMaxTtlMs, maxEntries: MAX_WRITTEN, now });
  // Recently purged prefixes of keys: a purge follows writes that have bypassed the proxy.
  const purged = new ExpiringMap<true>({ ttlMs: settings.secondaryMaxTtlMs, maxEntries: MAX_PURGED, now });

  async function readWithFailover(read: HandleRead, deadline: number): Promise<Outcome> {
    const failed: ServiceError[] = [];
    const order = inOrder(servers);
    for (const server of order) {
      const startedAt = performance.now();
      if (startedAt >= deadline) break;
      const isLast = failed.length === order.length - 1;
      try {
        const until = isLast ? deadline : Math.min(deadline, startedAt + settings.failoverAfterMs);
        const outcome = await server.read(read, until);
        return server === primary ? outcome : { ...outcome, isFromSecondary: true };
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        // A single failing record does not affect reads of other handles.
        if (scopeOf(error) !== 'record') server.health.avoid();
        failed.push(error);
      }
    }
    throw mostSpecific(failed);
  }

  return {
    resolve(read) {
      const { text, key } = read.handle;
      // Servers resolve these dot segments even when percent-encoded; a handle without a prefix cannot exist.
      if (text === '.' || text === '..') return Promise.resolve({ kind: 'not-found' });
      const deadline = performance.now() + timeoutMs;
      // Only the primary is authoritative; a secondary could return the record from before an acknowledged write.
      const isForPrimary =
        read.authoritative || secondaries.length === 0 || written.has(key) || purged.hasPrefixOf(key);
      return isForPrimary ? primary.read(read, deadline) : readWithFailover(read, deadline);
    },
    preferPrimary:
      secondaries.length === 0
        ? undefined
        : (changed) => {
            if ('key' in changed) written.set(changed.key, true);
            else if (purged.set(changed.prefix, true)) purged.set('', true);
          },
    usage: () => sumUsages(servers.map(({ usage }) => usage())),
  };
}

function sumUsages(usages: readonly LimiterUsage[]): LimiterUsage {
  const sum = { running: 0, waiting: 0, limit: 0 };
  for (const { running, waiting, limit } of usages) {
    sum.running += running;
    sum.waiting += waiting;
    sum.limit += limit;
  }
  return sum;
}

/** Prefers an error from a contacted server to a local rejection. */
function mostSpecific(failed: readonly ServiceError[]): ServiceError {
  const contacted = failed.find(({ code }) => code !== 'UPSTREAM_BACKOFF' && code !== 'OVERLOADED');
  return contacted ?? failed[0] ?? new ServiceError('UPSTREAM_TIMEOUT');
}
