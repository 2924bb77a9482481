// Creates the application: each part once, connected by hand. Importing it has no side effects.
import type { RequestListener } from 'node:http';
import { type ProcessControl, createOperations } from './admin/operations.js';
import type { Cache } from './cache/cache.js';
import { type Coordination, createCoordination } from './coordination/coordination.js';
import type { Config } from './config/schema.js';
import type { Outcome } from './handle/outcome.js';
import { createActivity } from './observe/activity.js';
import type { Logger } from './observe/logger.js';
import type { Metrics } from './observe/metrics.js';
import { type EventLoop, type Readiness, createReadiness, watchEventLoop } from './observe/health.js';
import { type LimiterUsage, ConcurrencyLimiter } from './upstream/concurrency-limiter.js';
import { type Connections, type createPools, createConnections } from './upstream/connections.js';
import { makeAdmin } from './compose/admin.js';
import { makeCache } from './compose/cache.js';
import { makeHandler } from './compose/http.js';
import { createProcessControl } from './compose/process-control.js';
import { type SharedDeps, type Peers, makeTracing, newInstance } from './compose/shared-deps.js';
import { limiterOptions, makeResolver, makeUpstream, shareUpstream } from './compose/resolver.js';

export interface AppDeps {
  config: Config;
  /** Text of the PEM file `upstream.caFile`. */
  ca?: string | undefined;
  /** Text of the PEM file `redis.caFile`. */
  redisCa?: string | undefined;
  logger: Logger;
  metrics: Metrics;
  now?: () => number;
  /** How to connect to the upstream and the reverse look-up service; undici pools by default. */
  createDispatcher?: typeof createPools;
  /** The other workers of this machine, when there are any. */
  peers?: Peers;
  /** Distinguishes this proxy from others in `Via`; the same for all workers of a machine. */
  instance?: string;
}

export interface App {
  /** Answers the public listener. */
  handler: RequestListener;
  /** Answers the operator's listener. */
  admin: RequestListener;
  /** For `/readyz` of the admin listener. */
  readiness: Readiness;
  /** Deletes all entries: those from before the first message of the primary may have missed a write. */
  clearCache: () => void;
  /** Applies a message that the primary has sent. */
  apply: Cache['apply'];
  /** Applies a change of the unclaimed names by another worker. */
  applyUnclaimedName: Coordination['receive'];
  /** Loads from the upstream, once for all workers that wait for the same key. */
  load: (key: string, handle: string) => Promise<Outcome>;
  /** Controls this process for the admin API. */
  control: ProcessControl;
  /** Applies the keys that may change while the process runs; the others must be unchanged. */
  reload: (config: Config) => void;
  close: () => Promise<void>;
}

/** @throws Error when the configuration names no upstream */
export function createApp(deps: AppDeps): App {
  const { url: upstreamUrl } = deps.config.upstream;
  if (upstreamUrl === undefined) throw new Error('upstream.url is not set');
  const pseudonym = `handle-resolver-proxy-${deps.instance ?? newInstance()}`;
  const now = deps.now ?? Date.now;
  const activity = createActivity(now);
  const tracing = makeTracing(deps.config, deps.logger, now);
  const traced = tracing && { tracer: tracing.tracer };
  const shared: SharedDeps = { ...deps, now, activity, upstreamUrl, pseudonym, ...traced };
  const { peers } = shared;
  const connections = makeConnections(shared);
  const cache: Cache = makeCache(shared, {
    onInvalidated(key) {
      resolver.detachLoads(key);
    },
    onBanned(prefix) {
      resolver.detachLoadsUnder(prefix);
    },
  });
  const coordination = makeCoordination(shared, cache);
  const client = makeUpstream(shared, connections);
  const upstream = shareUpstream(shared, { cache, upstream: client });
  const limiter = new ConcurrencyLimiter(limiterOptions(shared, 'passed'));
  const resolver = makeResolver(shared, { cache, upstream });
  shared.metrics.registerStoreUsage(() => cache.memory.usage());
  const usages = (): [read: LimiterUsage, passed: LimiterUsage] => [client.usage(), limiter.usage()];
  registerUsage(shared, usages);
  const readiness = createReadiness();
  const eventLoop = makeEventLoop(shared, readiness);
  const control = createProcessControl(shared, { cache, resolver, eventLoop, usages });
  const operations = createOperations(() => [control], now);
  const made = { resolver, cache, coordination, connections, limiter };
  const { handler, rebuild, close } = makeHandler(shared, made);
  return {
    handler,
    admin: makeAdmin(shared, { metrics: shared.metrics, readiness, operations }),
    readiness,
    clearCache: cache.clear,
    apply: cache.apply,
    applyUnclaimedName: coordination.receive,
    load: (key, handle) => upstream.load(key, handle),
    control,
    reload(config) {
      if (config.log.level !== shared.config.log.level) shared.logger.level = config.log.level;
      shared.config = config;
      rebuild();
    },
    async close() {
      // Connections cut from now on are no failure of the upstream for other workers.
      peers?.stopLoading();
      eventLoop.close();
      activity.close();
      await Promise.all([close(), cache.close(), connections.close()]);
      await tracing?.close();
    },
  };
}

function makeCoordination({ config, peers, now }: SharedDeps, { commands }: Cache): Coordination {
  return createCoordination({ shared: commands, worker: peers, lockWaitMs: config.v2.lockWait, now });
}

function makeConnections({ config, upstreamUrl, ca, createDispatcher }: SharedDeps): Connections {
  const { connections, fingerprint } = config.upstream;
  return createConnections({ url: upstreamUrl, connections, ca, fingerprint }, createDispatcher);
}

function registerUsage(
  { metrics }: SharedDeps,
  usages: () => [read: LimiterUsage, passed: LimiterUsage],
): void {
  metrics.registerLimitUsage(() => {
    const [read, passed] = usages();
    return [
      { kind: 'read', ...read },
      { kind: 'passed', ...passed },
    ];
  });
}

/** A process whose event loop is blocked is not ready. */
function makeEventLoop({ config, metrics }: SharedDeps, readiness: Readiness): EventLoop {
  const eventLoop = watchEventLoop();
  const mostMs = config.admin.maxEventLoopDelay;
  metrics.registerEventLoopDelay(eventLoop.delayMs);
  readiness.register('event loop', () => mostMs === 0 || eventLoop.delayMs() <= mostMs);
  return eventLoop;
}
