// Creates the application: each part once, connected by hand. Importing it has no side effects.
import type { RequestListener } from 'node:http';
import type { Operations } from './admin/operations.js';
import type { Cache } from './cache/cache.js';
import { type Restoring, createRestoring } from './cache/snapshot/restoring.js';
import { systemClock } from './cache/clock.js';
import type { Config } from './config/schema.js';
import { describeServers, isUpstreamGiven, upstreamServers } from './config/upstream-servers.js';
import type { Context } from './context.js';
import { createHits } from './observe/hits.js';
import type { Logger } from './observe/logger.js';
import type { Metrics } from './observe/metrics.js';
import type { NativeAnswer } from './native/answer.js';
import { type NativeListeners, createNativeListeners } from './native/listeners.js';
import { createNative } from './native/native.js';
import { createPeerTrust } from './server/client-address.js';
import type { ClientConnections } from './server/http-server.js';
import { createMissLimit } from './traffic/miss-limit.js';
import {
  type EventLoop,
  type Readiness,
  type StartChecks,
  addStartChecks,
  createReadiness,
  watchEventLoop,
} from './observe/health.js';
import { newPseudonym } from './upstream/caller.js';
import { type Resolution, referralOf } from './resolver/resolution.js';
import type { Resolver } from './resolver/resolver.js';
import type { LimitMiss } from './upstream/caller.js';
import type { createPools } from './upstream/connections.js';
import { makeAdmin } from './compose/admin.js';
import { type CacheEvents, makeCache } from './compose/cache.js';
import { createPreparing } from './cache/prepared-cache.js';
import { type Coordination, createCoordination } from './coordination/coordination.js';
import { makeHandler } from './compose/http.js';
import { makeOperations } from './compose/operations.js';
import { type SharedDeps, makeBounds, makeTracing } from './compose/shared-deps.js';
import { createResolver, staleMsOf } from './resolver/create-resolver.js';
import type { Referral } from './upstream/referral/referrals.js';
import { type Upstreams, createUpstreams } from './upstream/upstreams.js';

export interface AppDeps {
  config: Config;
  logger: Logger;
  metrics: Metrics;
  now?: () => number;
  /** How to connect to the upstream and the reverse look-up service; undici pools by default. */
  createDispatcher?: typeof createPools;
}

export interface App {
  /** Answers the public listener. */
  handler: RequestListener;
  context: Context;
  /** For the public listener. */
  connections: ClientConnections;
  /** Answers native messages. */
  native: NativeAnswer;
  /** The native listeners that are on; none is open. */
  nativeListeners: NativeListeners;
  /** Answers the operator's listener. */
  admin: RequestListener;
  /** For `/readyz` of the admin listener. */
  readiness: Readiness;
  /** Makes readiness wait for the first contact with Redis, and for something to answer with. */
  addStartChecks: () => StartChecks;
  /** The calls of the admin API, without its listener. */
  operations: Operations;
  /** Applies the keys that may change while the process runs; the others must be unchanged. */
  reload: (config: Config) => void;
  close: () => Promise<void>;
}

/** @throws Error when the configuration names no upstream */
export function createApp(deps: AppDeps): App {
  if (!isUpstreamGiven(deps.config)) throw new Error('upstream.url is not set');
  const pseudonym = newPseudonym();
  const now = deps.now ?? Date.now;
  const tracing = makeTracing(deps.config, deps.logger, now);
  const traced = tracing && { tracer: tracing.tracer };
  const context: Context = {
    log: deps.logger,
    metrics: deps.metrics,
    clock: { ...systemClock, now },
    tracer: tracing?.tracer,
  };
  const shared: SharedDeps = { ...deps, context, now, pseudonym, ...makeBounds(deps.config), ...traced };
  const cache: Cache = makeCache(
    shared,
    cacheEvents(() => ({ resolver, restoring })),
  );
  const restoring = makeRestoring(shared, cache);
  const coordination = makeCoordination(shared, cache);
  const upstreams = makeUpstreams(shared, (handle) => resolver.resolve(handle, { authoritative: false }));
  const limitMiss = makeMissLimit(shared, { coordination, upstreams });
  const loading = { cache, upstream: upstreams.reads, limitMiss };
  const resolver = createResolver(() => shared.config, context, loading);
  registerUsage(shared, { cache, upstreams });
  const readiness = createReadiness();
  const eventLoop = makeEventLoop(shared, readiness);
  const operations = makeOperations(shared, { cache, resolver, restoring, coordination });
  const made = makeAnswering(shared, { resolver, cache, coordination, upstreams, limitMiss });
  const native = createNative(deps.config, context, { ...made, records: upstreams.records });
  const { handler, admitMessage, rebuild, close } = makeHandler(shared, { ...made, native });
  const connections = makeConnections(shared);
  const listening = { ...connections, native, bodies: shared.bodies, admit: admitMessage };
  return {
    handler,
    context,
    connections,
    native,
    nativeListeners: createNativeListeners(deps.config, context, listening),
    admin: makeAdmin(shared, { readiness, heldMs: eventLoop.heldMs, operations }),
    readiness,
    operations,
    addStartChecks: () => addStartChecks(deps.config, { readiness, cache, restoring }),
    reload(config) {
      if (config.log.level !== shared.config.log.level) shared.logger.level = config.log.level;
      shared.config = config;
      rebuild();
    },
    async close() {
      eventLoop.close();
      coordination.close();
      await Promise.all([close(), upstreams.close(), restoring.close()]);
      await cache.close();
      await tracing?.close();
    },
  };
}

/** A reload may change which proxies are trusted. */
const makeConnections = (shared: SharedDeps): ClientConnections => ({
  isTrustedProxy: createPeerTrust(() => shared.config.http.trustedProxies),
  unsent: shared.unsent,
});

/** The records of prefixes are read by the cache. */
function makeUpstreams(shared: SharedDeps, resolve: (handle: string) => Promise<Resolution>): Upstreams {
  const { config, context } = shared;
  const settings = { upstream: config.upstream, servers: upstreamServers(config) };
  const findReferral = async (handle: string): Promise<Referral | undefined> =>
    referralOf(await resolve(handle));
  return createUpstreams(settings, context, { ...shared, findReferral });
}

function makeMissLimit(
  shared: SharedDeps,
  { coordination, upstreams }: { coordination: Coordination; upstreams: Upstreams },
): LimitMiss {
  const parts = { networks: coordination.limitedNetworks, servers: upstreams.servers };
  return createMissLimit(() => shared.config.traffic.unknown, shared.context, parts);
}

/** The parts that follow the cache are created after it. */
function cacheEvents(parts: () => { resolver: Resolver<unknown>; restoring: Restoring }): CacheEvents {
  return {
    onInvalidated(key) {
      parts().resolver.detachLoads(key);
    },
    onBanned(prefix) {
      parts().resolver.detachLoadsUnder(prefix);
    },
    onDeleted(deleted) {
      parts().restoring.recordDeletion(deleted);
    },
  };
}

function makeCoordination(shared: SharedDeps, cache: Cache): Coordination {
  const { config, context } = shared;
  const unknown = (): Config['traffic']['unknown'] => shared.config.traffic.unknown;
  return createCoordination({ ...config, servers: upstreamServers(config), unknown }, context, cache);
}

function makeRestoring(shared: SharedDeps, { memory }: Cache): Restoring {
  const { config, context } = shared;
  const { caseSensitive } = config.upstream;
  const servers = upstreamServers(config);
  return createRestoring(
    {
      snapshot: config.cache.snapshot,
      seed: config.seed,
      identity: JSON.stringify({ upstream: describeServers(servers), caseSensitive }),
      hasServer: servers.length > 0,
      caseSensitive,
      // A reload may change it.
      staleIfErrorMs: (key) => staleMsOf(shared.config.cache.staleIfError, key),
      memory,
    },
    context,
  );
}

/** Adds what all interfaces answer hits with. */
function makeAnswering<T extends { resolver: Resolver<unknown>; cache: Cache }>(shared: SharedDeps, made: T) {
  return {
    ...made,
    preparing: createPreparing(shared.config.http.hotPath, {
      memory: made.cache.memory,
      trustedSince: made.cache.trustedSince,
      keyOf: (handle) => made.resolver.keyOf(handle),
    }),
    hits: createHits(shared.context),
  };
}

function registerUsage(
  { metrics }: SharedDeps,
  { cache, upstreams: { servers } }: { cache: Cache; upstreams: Upstreams },
): void {
  metrics.registerStoreUsage(() => cache.memory.usage());
  metrics.registerLimitUsage(() =>
    servers.flatMap(({ url, usage }) =>
      Object.entries(usage()).map(([kind, used]) => ({ server: url, kind, ...used })),
    ),
  );
}

/** A process whose event loop is blocked is not ready. */
function makeEventLoop({ config, metrics }: SharedDeps, readiness: Readiness): EventLoop {
  const mostMs = config.admin.maxEventLoopDelayMs;
  const eventLoop = watchEventLoop(mostMs);
  metrics.registerEventLoopDelay(() => [eventLoop.delayMs()]);
  readiness.register('event loop', () => mostMs === 0 || eventLoop.delayMs() <= mostMs);
  return eventLoop;
}
