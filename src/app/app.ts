// Creates the application: each part once, wired by hand. Importing it has no side effects.
import { createFindPeriod, createIsServed, createRefOf } from '../upstream/routing.js';
import type { RequestListener } from 'node:http';
import { createAdmin } from '../admin/app.js';
import { type Operations, createOperations } from '../admin/operations.js';
import { createCache } from '../cache/cache.js';
import { type Clock, systemClock } from '../cache/clock.js';
import { PreparedCache } from '../cache/prepared-cache.js';
import { createRestoring } from '../cache/snapshot/restoring.js';
import type { Config } from '../config/schema.js';
import {
  type ConfiguredServer,
  isUpstreamGiven,
  unservedPrefixes,
  upstreamServers,
} from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { createMemoryBudget } from '../http/request-body.js';
import { createRunStepsOf } from '../http/request-work.js';
import type { NativeAnswer } from '../native/answer.js';
import { createNative, type NativeListeners, createNativeListeners } from '../native/native.js';
import {
  type EventLoop,
  type Readiness,
  createReadiness,
  watchEventLoop,
  type StartChecks,
  addStartChecks,
} from '../observe/health.js';
import { createHits } from '../observe/hits.js';
import { type Logger, createIsLogged, onDroppedLines } from '../observe/logger.js';
import type { Metrics } from '../observe/metrics.js';
import {
  type Host,
  type LoadedPlugins,
  type Plugin,
  loadPlugins,
  metricsOf,
  startPlugins,
} from './plugin.js';
import { PLUGINS } from './plugins.js';
import { createPublicListener } from './public-listener.js';
import { referralOf } from '../resolver/resolution.js';
import { type Resolver, createResolver } from '../resolver/resolver.js';
import { createFindClient, createProxyTrust } from '../server/client-address.js';
import type { ClientConnections } from '../server/http-server.js';
import { type Hooks, createHooks } from '../hooks.js';
import { TimeSlicer } from '../time-slicer.js';
import { createLimitedNetworks } from '../traffic/limited-networks.js';
import { createMissLimit } from '../traffic/miss-limit.js';
import { newPseudonym } from '../upstream/caller.js';
import type { createPools } from '../upstream/connections.js';
import { createUpstreams } from '../upstream/upstreams.js';
import { createOriginOf } from '../write/origin-record.js';

export interface AppDeps {
  config: Config;
  logger: Logger;
  metrics: Metrics;
  /** Replaces parts of the system clock. */
  clock?: Partial<Clock>;
  /** @internal The plugins that the configuration may enable; defaults to all. */
  plugins?: readonly Plugin[];
  /** Creates the connections to the upstream and the reverse lookup service; defaults to undici pools. */
  createDispatcher?: typeof createPools;
}

export interface App {
  /** Handles requests on the public listener. */
  handler: RequestListener;
  context: Context;
  /** Client identification and memory budgets for the public listener. */
  connections: ClientConnections;
  /** Answers native messages. */
  native: NativeAnswer;
  /** The enabled native listeners, not yet open. */
  nativeListeners: NativeListeners;
  /** Handles requests on the admin listener. */
  admin: RequestListener;
  /** Checks for `/readyz` on the admin listener. */
  readiness: Readiness;
  /** Adds readiness checks for the first contact with Redis, and for an upstream or records to serve. */
  addStartChecks: () => StartChecks;
  /** The admin API operations, for use without the listener. */
  operations: Operations;
  /** Applies the reloadable keys; all other keys must be unchanged. */
  reload: (config: Config) => void;
  close: () => Promise<void>;
}

/**
 * The configuration with its Handle servers. Parts that follow reloads receive a function that returns the
 * current settings; all other parts receive the initial settings.
 */
interface AppSettings extends Config {
  servers: readonly ConfiguredServer[];
  /** Prefixes without a server. */
  unserved: readonly string[];
  /** `cache.staleIfError`, whose prefixes take precedence over those of plugins. */
  staleIfError: Config['cache']['staleIfError'];
}

const settingsOf = (config: Config, { stalePeriod }: Hooks): AppSettings => ({
  ...config,
  servers: upstreamServers(config),
  unserved: unservedPrefixes(config),
  staleIfError: [...stalePeriod, ...config.cache.staleIfError],
});

/** Creates all parts of the proxy. @throws Error when the configuration names no upstream */
export async function createApp(deps: AppDeps): Promise<App> {
  if (!isUpstreamGiven(deps.config)) throw new Error('upstream.url is not set');
  const { plugins = PLUGINS, ...rest } = deps;
  return assemble({ ...rest, plugins }, await loadPlugins(plugins, deps.config));
}

function assemble(
  { config, createDispatcher, plugins, ...deps }: AppDeps & Required<Pick<AppDeps, 'plugins'>>,
  loaded: LoadedPlugins,
): App {
  const hooks = createHooks();
  let current = settingsOf(config, hooks);
  const settings = (): AppSettings => current;
  const shared = createShared(settings, createDispatcher);
  const context = createContext(settings, { ...deps, hooks });
  context.metrics.add(metricsOf(plugins));
  const sources = createSources(settings, context, shared);
  const { cache, restoring, closeLimits, upstreams } = sources;
  const host = createHost(context, sources, shared);
  const pluginHandlers = startPlugins(loaded, { host, hooks, settings: config });
  current = settingsOf(config, hooks);
  const createPrepared = (): PreparedCache =>
    new PreparedCache(config.http.responseCache, { ...cache, onRepeat: hooks.repeat });
  let prepared = createPrepared();
  const parts = { ...shared, ...sources, preparedCache: () => prepared, hits: createHits(context) };
  const native = createNative(config, context, parts);
  const { listener, admitMessage, ...listening } = createPublicListener(settings, context, {
    ...parts,
    native,
  });
  const operations = createOperations(settings, context, {
    ...sources,
    statistics: () => readStatistics(plugins, hooks),
  });
  const readiness = createReadiness();
  const eventLoop = createEventLoop(config, context, readiness);
  const admin = { readiness, operations, plugins, pluginHandlers };
  return {
    handler: listener,
    context,
    connections: shared,
    native,
    nativeListeners: createNativeListeners(config, context, { ...shared, native, admit: admitMessage }),
    admin: createAdmin(settings, context, { ...admin, blockedMs: eventLoop.blockedMs }),
    readiness,
    operations,
    addStartChecks: () => addStartChecks(config, { readiness, cache, restoring }),
    reload(next) {
      // A log level set on the admin listener persists unless the key itself has changed.
      if (next.log.level !== current.log.level) context.log.level = next.log.level;
      current = settingsOf(next, hooks);
      // A new cache, because requests in flight still prepare responses with the previous settings.
      prepared = createPrepared();
      listening.reload();
    },
    async close() {
      eventLoop.close();
      closeLimits();
      // Concurrently, so that a helper that does not respond leaves the others their time.
      await Promise.all([
        listening.close(),
        upstreams.close(),
        restoring.close(),
        ...hooks.close.map((close) => close()),
      ]);
      await cache.close();
    },
  };
}

function createContext(
  settings: () => AppSettings,
  {
    logger: log,
    metrics,
    clock: replaced,
    hooks,
  }: Pick<AppDeps, 'logger' | 'metrics' | 'clock'> & Pick<Context, 'hooks'>,
): Context {
  const clock = { ...systemClock, ...replaced };
  onDroppedLines(log, (count) => {
    metrics.countDroppedTelemetry('log', count);
  });
  return { log, isLogged: createIsLogged(settings), metrics, clock, hooks };
}

/**
 * Creates the parts that limit the work and memory of all requests together, and those that identify clients.
 */
function createShared(settings: () => AppSettings, createDispatcher: AppDeps['createDispatcher']) {
  const { http, upstream } = settings();
  const slicer = new TimeSlicer({ monotonic: () => performance.now(), nextTurn: setImmediate });
  const isTrustedProxy = createProxyTrust(() => settings().http.trustedProxies);
  const findClient = createFindClient(isTrustedProxy);
  return {
    pseudonym: newPseudonym(),
    // At least `maxBodyBytes`, so that one body of the maximum size always fits.
    bodies: createMemoryBudget(Math.max(http.maxBodyBytes, http.maxBufferedBodyBytes)),
    unsent: createMemoryBudget(http.maxUnsentResponseBytes),
    slicer,
    isTrustedProxy,
    findClient,
    runStepsOf: createRunStepsOf({ slicer, findClient, maxRecordBytes: upstream.maxRecordBytes }),
    createDispatcher,
  };
}

/** Creates the cache, the Handle servers and the resolver above both, with the parts that depend on them. */
function createSources(
  settings: () => AppSettings,
  context: Context,
  shared: ReturnType<typeof createShared>,
) {
  const { servers, unserved, upstream } = settings();
  const staleIfErrorMs = createFindPeriod(() => settings().staleIfError);
  const refOf = createRefOf(servers, upstream.caseSensitive);
  const isServed = createIsServed(servers, unserved);
  const cache = createCache(settings(), context);
  const restoring = createRestoring(settings(), context, {
    memory: cache.memory,
    refOf,
    isServed,
    staleIfErrorMs,
  });
  const { networks, close: closeLimits } = createLimitedNetworks(settings, context, cache.commands);
  const upstreams = createUpstreams(settings(), context, {
    ...shared,
    // Prefix records are read through the cache.
    findReferral: async (handle) =>
      referralOf(await resolver.resolve(resolver.refOf(handle), { authoritative: false })),
  });
  const limitMiss = createMissLimit(settings, context, {
    networks,
    servers: upstreams.servers,
  });
  const resolver: Resolver<unknown> = createResolver(settings, context, {
    cache,
    upstream: upstreams.reads,
    limitMiss,
    slicer: shared.slicer,
    refOf,
    staleIfErrorMs,
  });
  const originOf = createOriginOf({ upstreams, resolver, limitMiss });
  return {
    cache,
    restoring,
    limitedNetworks: networks,
    closeLimits,
    upstreams,
    limitMiss,
    resolver,
    refOf,
    originOf,
  };
}

const createHost = (
  { log, metrics, clock }: Context,
  { cache, resolver, upstreams, refOf, restoring: { whenRestored } }: ReturnType<typeof createSources>,
  { isTrustedProxy }: ReturnType<typeof createShared>,
): Host => ({ log, metrics, clock, cache, resolver, upstreams, refOf, isTrustedProxy, whenRestored });

/** Returns the members of plugins in `GET /stats`. */
const readStatistics = (plugins: readonly Plugin[], { statistics }: Hooks): object => ({
  ...mergeAll(plugins.map((plugin) => plugin.statistics ?? {})),
  ...mergeAll(statistics.map((read) => read())),
});

const mergeAll = (parts: readonly object[]): object => Object.fromEntries(parts.flatMap(Object.entries));

/** Watches the event loop. While its delay is too long, the process is not ready. */
function createEventLoop({ admin }: Config, { metrics }: Context, readiness: Readiness): EventLoop {
  const mostMs = admin.maxEventLoopDelayMs;
  const eventLoop = watchEventLoop(mostMs);
  metrics.registerEventLoopDelay(() => [eventLoop.delayMs()]);
  readiness.register('event loop', () => mostMs === 0 || eventLoop.delayMs() <= mostMs);
  return eventLoop;
}
