// Creates the application: each part once, connected by hand. Importing it has no side effects.
import { createFindPeriod } from './upstream/routing.js';
import type { RequestListener } from 'node:http';
import { createAdmin } from './admin/app.js';
import { type Operations, createOperations } from './admin/operations.js';
import { type CacheEvents, createCache } from './cache/cache.js';
import { systemClock } from './cache/clock.js';
import { createPreparing } from './cache/prepared-cache.js';
import { type Restoring, createRestoring } from './cache/snapshot/restoring.js';
import type { Config } from './config/schema.js';
import { type ConfiguredServer, isUpstreamGiven, upstreamServers } from './config/upstream-servers.js';
import type { Context } from './context.js';
import { createCoordination } from './coordination/coordination.js';
import { createMemoryBudget } from './http/request-body.js';
import { createRunStepsOf } from './http/request-work.js';
import type { NativeAnswer } from './native/answer.js';
import { createNative, type NativeListeners, createNativeListeners } from './native/native.js';
import {
  type EventLoop,
  type Readiness,
  createReadiness,
  watchEventLoop,
  type StartChecks,
  addStartChecks,
} from './observe/health.js';
import { createHits } from './observe/hits.js';
import { type Logger, createIsLogged } from './observe/logger.js';
import type { Metrics } from './observe/metrics.js';
import { createTracing } from './observe/tracer.js';
import { createPublicListener } from './public-listener.js';
import { referralOf } from './resolver/resolution.js';
import { type Resolver, createResolver } from './resolver/resolver.js';
import { createFindClient, createProxyTrust } from './server/client-address.js';
import type { ClientConnections } from './server/http-server.js';
import { TimeSlicer } from './time-slicer.js';
import { createMissLimit } from './traffic/miss-limit.js';
import { newPseudonym } from './upstream/caller.js';
import type { createPools } from './upstream/connections.js';
import { createUpstreams } from './upstream/upstreams.js';
import { createOriginOf } from './write/origin-record.js';

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

/**
 * The configuration with its Handle servers. A part that follows a reload is given a function that returns the one of
 * now; the others are given the one of the start.
 */
interface AppSettings extends Config {
  servers: readonly ConfiguredServer[];
}

const settingsOf = (config: Config): AppSettings => ({ ...config, servers: upstreamServers(config) });

/** @throws Error when the configuration names no upstream */
export function createApp({ config, createDispatcher, ...deps }: AppDeps): App {
  if (!isUpstreamGiven(config)) throw new Error('upstream.url is not set');
  let current = settingsOf(config);
  const settings = (): AppSettings => current;
  const { context, closeTracing } = createContext(settings, deps);
  const shared = createShared(settings, createDispatcher);
  const sources = createSources(settings, context, shared);
  const { cache, resolver, restoring, coordination, upstreams } = sources;
  const keyOf = (handle: string): string => resolver.refOf(handle).key;
  const preparing = createPreparing(config.http.hotPath, { ...cache, keyOf });
  const parts = { ...shared, ...sources, preparing, hits: createHits(context) };
  const native = createNative(config, context, parts);
  const { listener, admitMessage, ...listening } = createPublicListener(settings, context, {
    ...parts,
    native,
  });
  const nativeParts = { ...shared, native, admit: admitMessage };
  const operations = createOperations(settings, context, sources);
  const readiness = createReadiness();
  const eventLoop = createEventLoop(config, context, readiness);
  return {
    handler: listener,
    context,
    connections: shared,
    native,
    nativeListeners: createNativeListeners(config, context, nativeParts),
    admin: createAdmin(settings, context, { readiness, heldMs: eventLoop.heldMs, operations }),
    readiness,
    operations,
    addStartChecks: () => addStartChecks(config, { readiness, cache, restoring }),
    reload(next) {
      // A level set on the admin listener stays unless the key itself has changed.
      if (next.log.level !== current.log.level) context.log.level = next.log.level;
      current = settingsOf(next);
      listening.reload();
    },
    async close() {
      eventLoop.close();
      coordination.close();
      await Promise.all([listening.close(), upstreams.close(), restoring.close()]);
      await cache.close();
      await closeTracing();
    },
  };
}

function createContext(
  settings: () => AppSettings,
  { logger: log, metrics, now = Date.now }: Omit<AppDeps, 'config'>,
) {
  const clock = { ...systemClock, now };
  const tracing = createTracing(settings(), { log, clock });
  const context: Context = {
    log,
    isLogged: createIsLogged(settings),
    metrics,
    clock,
    tracer: tracing?.tracer,
  };
  return { context, closeTracing: async () => tracing?.close() };
}

/** What bounds the work and the memory of all requests, and whose they are. */
function createShared(settings: () => AppSettings, createDispatcher: AppDeps['createDispatcher']) {
  const { http } = settings();
  const slicer = new TimeSlicer({ monotonic: () => performance.now(), nextTurn: setImmediate });
  const isTrustedProxy = createProxyTrust(() => settings().http.trustedProxies);
  const findClient = createFindClient(isTrustedProxy);
  return {
    pseudonym: newPseudonym(),
    // One body of the maximum size is always accepted.
    bodies: createMemoryBudget(Math.max(http.maxBodyBytes, http.bodiesMaxBytes)),
    unsent: createMemoryBudget(http.unsentMaxBytes),
    slicer,
    isTrustedProxy,
    findClient,
    runStepsOf: createRunStepsOf(slicer, findClient),
    createDispatcher,
  };
}

/** Where records come from: the cache, the Handle servers, and the resolver over both. */
function createSources(
  settings: () => AppSettings,
  context: Context,
  shared: ReturnType<typeof createShared>,
) {
  const staleIfErrorMs = createFindPeriod(() => settings().cache.staleIfError);
  const cache = createCache(
    settings(),
    context,
    cacheEvents(() => ({ resolver, restoring })),
  );
  const restoring = createRestoring(settings(), context, { memory: cache.memory, staleIfErrorMs });
  const coordination = createCoordination(settings, context, cache);
  const upstreams = createUpstreams(settings(), context, {
    ...shared,
    // The records of prefixes are read by the cache.
    findReferral: async (handle) =>
      referralOf(await resolver.resolve(resolver.refOf(handle), { authoritative: false })),
  });
  const limitMiss = createMissLimit(settings, context, {
    networks: coordination.limitedNetworks,
    servers: upstreams.servers,
  });
  const loading = { cache, upstream: upstreams.reads, limitMiss, staleIfErrorMs };
  const resolver: Resolver<unknown> = createResolver(settings, context, loading);
  const originOf = createOriginOf({ upstreams, resolver, limitMiss });
  return { cache, restoring, coordination, upstreams, limitMiss, resolver, originOf };
}

/** The parts that follow the cache are created after it. */
const cacheEvents = (parts: () => { resolver: Resolver<unknown>; restoring: Restoring }): CacheEvents => ({
  onInvalidated(key) {
    parts().resolver.detachLoads(key);
  },
  onBanned(prefix) {
    parts().resolver.detachLoadsUnder(prefix);
  },
  onDeleted(deleted) {
    parts().restoring.recordDeletion(deleted);
  },
});

/** A process whose event loop is blocked is not ready. */
function createEventLoop({ admin }: Config, { metrics }: Context, readiness: Readiness): EventLoop {
  const mostMs = admin.maxEventLoopDelayMs;
  const eventLoop = watchEventLoop(mostMs);
  metrics.registerEventLoopDelay(() => [eventLoop.delayMs()]);
  readiness.register('event loop', () => mostMs === 0 || eventLoop.delayMs() <= mostMs);
  return eventLoop;
}
