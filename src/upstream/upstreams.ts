// Creates the clients for all servers, and routes handles to them.
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { TimeSlicer } from '../time-slicer.js';
import { createUpstreamClient } from './client.js';
import { ConcurrencyLimiter } from './concurrency-limiter.js';
import { type createPools, createConnections, readTrust } from './connections.js';
import type { OriginServer, ServerSettings, UpstreamClient } from './contract.js';
import { type ServerKeys, keysAt } from './failure.js';
import { createRecordClient } from './record-client.js';
import { type FindServers, createPrefixRouting, routeReads } from './routing.js';
import { sessionsOf } from './sessions.js';
import type { SourceServer } from './source.js';

export interface Upstreams {
  reads: UpstreamClient;
  servers: readonly OriginServer[];
  /**
   * Serves requests without a handle, such as those for sessions: the first writable server, else the first
   * that takes logins.
   */
  main: OriginServer | undefined;
  /** Returns the responsible servers in order of preference. */
  findServers: FindServers<OriginServer>;
  /** Returns the responsible server's address; undefined if no server is responsible. */
  serverOf: (handle: HandleRef) => string | undefined;
  /** Whether every server for the handle verifies the credentials of reads. */
  checksLogins: (handle: HandleRef) => boolean;
  close: () => Promise<void>;
}

interface UpstreamsSettings extends Pick<Config, 'upstream'> {
  servers: readonly SourceServer[];
  /** Prefixes without a server. */
  unserved: readonly string[];
}

export function createUpstreams(
  { upstream, unserved, servers: configured }: UpstreamsSettings,
  context: Context,
  parts: Omit<OriginServerParts, 'mainUrl' | 'keysOf'>,
): Upstreams {
  const { root: roots, fallback: fallbacks } = context.hooks;
  const { caseSensitive, retryAfterMs, secondaryMaxTtlMs } = upstream;
  const ofAll = { caseSensitive, retryAfterMs, secondaryMaxTtlMs };
  const ofEach = { ...parts, mainUrl: findMain(configured)?.url };
  const servers = configured.map((server) =>
    createOriginServer({ ...server, ...ofAll }, context, { ...ofEach, keysOf: (url) => keysAt(server, url) }),
  );
  const findServers = createPrefixRouting(servers, { roots, unserved });
  context.metrics.registerLimitUsage(() => servers.flatMap(usageOf));
  return {
    servers,
    main: findMain(servers),
    findServers,
    reads: routeReads({ servers, findServers, roots, fallbacks }),
    serverOf: (handle) => findServers(handle)[0]?.url,
    checksLogins: (handle) => findServers(handle).every(({ checksLogins }) => checksLogins),
    async close() {
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

const usageOf = ({ url, usage }: OriginServer) =>
  Object.entries(usage()).map(([kind, used]) => ({ server: url, kind, ...used }));

const findMain = <Server extends Pick<OriginServer, 'readOnly' | 'source'>>(
  servers: readonly Server[],
): Server | undefined =>
  servers.find(({ readOnly }) => !readOnly) ?? servers.find(({ source }) => source.forwards);

/**
 * @throws ServiceError NOT_RESPONSIBLE with a Handle server's message (recording
 * "create: prefix not homed here")
 */
export function assertFound(server: OriginServer | undefined): OriginServer {
  if (server === undefined)
    throw new ServiceError('NOT_RESPONSIBLE', { message: "That prefix doesn't live here" });
  return server;
}

interface OriginServerParts {
  /** Returns the configuration keys for the server at an address. */
  keysOf: (url: string) => ServerKeys;
  /** This proxy's name in `Via` (RFC 9110 §7.6.3). */
  pseudonym: string;
  slicer: TimeSlicer;
  /** Default: undici pools. */
  createDispatcher?: typeof createPools | undefined;
  /** Address of the server that opens sessions. */
  mainUrl: string | undefined;
}

/** Creates one server. */
export function createOriginServer(
  settings: ServerSettings,
  context: Context,
  { keysOf, createDispatcher, mainUrl, ...parts }: OriginServerParts,
): OriginServer {
  const { url, prefixes, source, readOnly, concurrency, writeTimeoutMs, connections } = settings;
  const { dispatcher, writeAgent, close } = createConnections(
    { url, connections, ...readTrust(settings) },
    createDispatcher,
  );
  const limiter = new ConcurrencyLimiter({
    ...settings,
    // Fixed, because write latency does not indicate load and list latency depends on the client.
    minConcurrency: concurrency,
    onRejected: () => {
      context.metrics.countRejected({ server: url, kind: 'forwarded' });
    },
  });
  const reads = createUpstreamClient(settings, context, { ...parts, dispatcher, keysOf });
  const onIgnoredLogin = warnOfIgnoredLogins(url, context);
  const sessions = sessionsOf(url, mainUrl);
  const records = createRecordClient(settings, { ...parts, limiter, dispatcher, sessions, onIgnoredLogin });
  return {
    url,
    prefixes,
    source,
    readOnly,
    concurrency,
    writeTimeoutMs,
    reads,
    records,
    list: source.forwards ? records.list : source.createList(settings, { ...parts, limiter, dispatcher }),
    writeAgent,
    limiter,
    sessions,
    checksLogins: !readOnly && url.startsWith('https:'),
    onIgnoredLogin,
    usage: () => ({ read: reads.usage(), forwarded: limiter.usage() }),
    close,
  };
}

/** Minimum interval between warnings, because clients repeat refused writes. */
const WARN_EVERY_MS = 60_000;

/**
 * Returns a callback for writes whose login the server ignored; undefined over https. Startup logs no
 * warning, because a second proxy, or a port marked as secure by the operator, accepts logins over http.
 */
function warnOfIgnoredLogins(url: string, { log, clock }: Context): (() => void) | undefined {
  if (!url.startsWith('http:')) return undefined;
  let warnedAt = -Infinity;
  return function onIgnoredLogin() {
    if (clock.now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = clock.now();
    const remedy = 'set upstream.url to an https address';
    log.warn({ upstream: url, remedy }, 'the Handle server ignored the login of a write');
  };
}
