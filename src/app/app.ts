// Creates the application: each part once, wired by hand. Importing it has no side effects.
import { createRefOf } from '../upstream/routing.js';
import type { RequestListener } from 'node:http';
import { createCache } from '../cache/cache.js';
import { type Clock, systemClock } from '../clock.js';
import { PreparedCache } from '../cache/prepared-cache.js';
import { Live } from '../config/live.js';
import type { Config } from '../config/schema.js';
import { isUpstreamGiven, unservedPrefixes, upstreamServers } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { createMemoryBudget } from '../http/request-body.js';
import { refuseLargeRecord } from '../http/request-work.js';
import { type Readiness, createReadiness, watchEventLoop, addStartChecks } from '../observe/health.js';
import { createHits } from '../observe/hits.js';
import { type Logger, createIsLogged, onDroppedLines } from '../observe/logger.js';
import { METRICS } from '../observe/metric-list.js';
import type { Metrics } from '../observe/metrics.js';
import type { Plugin } from '../plugin.js';
import { type LoadedPlugins, loadPlugins, metricsOf, sourcesOf, startPlugins } from './load-plugins.js';
import type { Host, Operations } from '../host.js';
import { createOperations } from './operations.js';
import { PLUGINS } from './plugins.js';
import { createPublicListener } from './public-listener.js';
import { Resolver } from '../resolver/resolver.js';
import { createStalePeriod } from '../resolver/stale-period.js';
import { createFindClient, createProxyTrust } from '../http/client-address.js';
import type { ClientConnections } from '../server/http-server.js';
import { type Hooks, type PluginListener, createHooks } from '../hooks.js';
import { TimeSlicer } from '../time-slicer.js';
import { newPseudonym } from '../upstream/caller.js';
import type { createPools } from '../upstream/connections.js';
import { type RecordSource, withSources } from '../upstream/contract.js';
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
  handler: RequestListener;
  context: Context;
  /** Client identification and memory budgets for the public listener. */
  connections: ClientConnections;
  /** @internal The parts of the core. */
  host: Host;
  listeners: readonly PluginListener[];
  /** Handles requests on the admin listener; without its plugin, each gets a 404. */
  admin: RequestListener;
  /** Checks for `/readyz` on the admin listener. */
  readiness: Readiness;
  /** Adds checks for Redis and something to serve. Returns what to call once the upstream has responded. */
  addStartChecks: () => () => void;
  operations: Operations;
  /** Applies the reloadable keys; all other keys must be unchanged. */
  reload: (config: Config) => void;
  close: () => Promise<void>;
}

/** @throws Error when the configuration names no upstream, one of a kind that no plugin reads, or an unreadable file */
export async function createApp(deps: AppDeps): Promise<App> {
  if (!isUpstreamGiven(deps.config)) throw new Error('upstream.url is not set');
  const { plugins = PLUGINS } = deps;
  return assemble(deps, plugins, await loadPlugins(plugins, deps.config));
}

async function assemble(
  { config, logger, metrics, clock, createDispatcher }: AppDeps,
  plugins: readonly Plugin[],
  loaded: LoadedPlugins,
): Promise<App> {
  const settings = new Live(config);
  const hooks = createHooks();
  onDroppedLines(logger, (count) => metrics.countDroppedTelemetry('log', count));
  metrics.add(metricsOf(plugins));
  const context: Context = {
    log: logger,
    isLogged: createIsLogged(settings),
    metrics,
    clock: { ...systemClock, ...clock },
    hooks,
  };
  const readiness = createReadiness();
  const core = createCore(settings, context, sourcesOf(loaded), createDispatcher);
  const eventLoop = createEventLoop(config, context, readiness);
  const operations = createOperations(core, () => pluginStatistics(plugins, hooks));
  const host: Host = { ...core, operations, readiness, blockedMs: eventLoop.blockedMs };
  async function close(): Promise<void> {
    eventLoop.close();
    host.hits.flush();
    // Concurrently, so that a plugin that waits for a server does not use up the time of the others.
    await Promise.all([host.upstreams.close(), ...hooks.close.map((end) => end())]);
    await host.cache.close();
  }
  try {
    const { handlers, listeners, ...started } = startPlugins(loaded, host, config);
    return {
      handler: createPublicListener(host, plugins, handlers),
      context,
      connections: host,
      host,
      listeners,
      admin: started.admin?.({ ...started, plugins }) ?? answerNotFound,
      readiness,
      operations,
      addStartChecks: () => addStartChecks(config, host),
      reload(next) {
        const { level } = settings.current.log;
        settings.reload(next);
        // A log level set on the admin listener persists unless the key itself has changed.
        if (next.log.level !== level) logger.level = next.log.level;
      },
      close,
    };
  } catch (error) {
    // A file may be missing. The connections to Redis would keep the program alive that embeds the proxy.
    await close();
    throw error;
  }
}

const answerNotFound: RequestListener = (_req, res) => res.writeHead(404).end();

/** Creates the core: bounds of all requests together, cache, Handle servers, and the resolver above both. */
function createCore(
  settings: Live<Config>,
  context: Context,
  sources: readonly RecordSource[],
  createDispatcher: typeof createPools | undefined,
) {
  const config = settings.current;
  const { http, upstream } = config;
  const servers = withSources(upstreamServers(config), sources);
  const pseudonym = newPseudonym();
  const slicer = new TimeSlicer({
    monotonic: () => performance.now(),
    nextTurn: setImmediate,
    records: { maxChars: upstream.maxRecordBytes, refuse: refuseLargeRecord },
  });
  const isTrustedProxy = createProxyTrust(settings);
  const findClient = createFindClient(isTrustedProxy, context, settings);
  const refOf = createRefOf(servers, upstream.caseSensitive);
  const staleIfErrorMs = createStalePeriod(settings, context.hooks);
  const upstreams = createUpstreams(config.upstream, servers, unservedPrefixes(config), context, {
    pseudonym,
    slicer,
    createDispatcher,
  });
  // Last of what may throw, because it connects to Redis.
  const cache = createCache(config, servers, context);
  const resolver = new Resolver(settings, context, {
    cache,
    upstream: upstreams.reads,
    slicer,
    refOf,
    staleIfErrorMs,
    isServed: upstreams.isServed,
  });
  return {
    ...context,
    settings,
    cache,
    resolver,
    upstreams,
    originOf: createOriginOf(upstreams, resolver),
    refOf,
    // A reload replaces it, because requests in flight still prepare some responses with the previous settings.
    preparedCache: settings.derive(
      ({ http: { responseCache } }) =>
        new PreparedCache(responseCache, { ...cache, onRepeat: context.hooks.repeat }),
    ),
    hits: createHits(context),
    isTrustedProxy,
    findClient,
    pseudonym,
    slicer,
    // At least `maxBodyBytes`, so that one body of the maximum size always fits.
    bodies: createMemoryBudget(Math.max(http.maxBodyBytes, http.maxBufferedBodyBytes)),
    unsent: createMemoryBudget(http.maxUnsentResponseBytes),
    createDispatcher,
    staleIfErrorMs,
    async whenRestored() {
      await Promise.all(context.hooks.restored);
    },
  };
}

const pluginStatistics = (plugins: readonly Plugin[], { statistics }: Hooks): object =>
  Object.assign(
    {},
    ...plugins.map((plugin) => plugin.statistics),
    ...statistics.map((read) => read()),
  ) as object;

/** Watches the event loop. While its delay is too long, the process is not ready. */
function createEventLoop({ admin }: Config, { metrics }: Context, readiness: Readiness) {
  const mostMs = admin.maxEventLoopDelayMs;
  const eventLoop = watchEventLoop(mostMs);
  metrics.readGauge(METRICS.eventLoopDelay, () => eventLoop.delayMs() / 1000);
  readiness.register('event loop', () => eventLoop.delayMs() <= mostMs);
  return eventLoop;
}
