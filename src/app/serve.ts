// Opens the listeners, reloads the configuration, and closes the listeners without losing a request.
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { valueAt, withValue } from '../config/keys.js';
import { ConfigError, type ExplainedKey, type StartConfig } from '../config/load.js';
import { describeOutgoingProxies } from '../config/outgoing-proxy.js';
import { VERSION } from '../config/package-files.js';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import { errorText } from '../errors.js';
import { type Logger, createLogger, flushLog } from '../observe/logger.js';
import { createMetrics } from '../observe/metrics.js';
import { createDrain } from '../server/drain.js';
import { createAdminServer, createHttpServer } from '../server/http-server.js';
import { type App, createApp } from './app.js';
import { configKeys } from './config.js';
import { adminConnections, fitToFileLimit, readFileLimit } from './file-limit.js';
import { listenHttp, openListeners } from './listen.js';
import { PLUGINS } from './plugins.js';
import { createProbes, startProbes } from './probes.js';

export interface Service {
  /** URL of the public listener, for example `http://127.0.0.1:8080`. */
  url: string;
  adminUrl: string;
  addresses: Readonly<Record<string, string>>;
  /**
   * Waits for `server.shutdownDelay` unless `timeoutMs` is given, stops accepting connections, completes requests in
   * flight within `server.shutdownTimeout`, and closes all connections.
   */
  stop: (timeoutMs?: number) => Promise<void>;
  /** Reads the configuration again and applies the keys that may change. */
  reload: (read: ReadConfig) => void;
  onUncaught: (error: unknown) => void;
}

/** Opens all listeners. @throws ListenError when an address is unusable */
export async function serve(
  config: Config,
  logger = createLogger({ level: config.log.level }),
): Promise<Service> {
  const fileLimit = readFileLimit();
  const open = await servePublic(fitToFileLimit(config, fileLimit, logger), logger);
  const admin = await serveAdmin(config, open.app, adminConnections(fileLimit));
  announce(config, logger, { url: open.url, ...open.addresses, admin: admin.url });
  const probes = await createProbes(config);
  const cancelProbes = startProbes(probes, open.app.context, open.upstreamAnswered);
  return {
    url: open.url,
    adminUrl: admin.url,
    addresses: open.addresses,
    reload: createReload(config, logger, open.app.reload),
    onUncaught(error) {
      const err = error instanceof Error ? error : new Error(`thrown value: ${String(error)}`);
      logger.fatal({ err }, 'uncaught exception, exiting');
    },
    async stop(timeoutMs) {
      logger.info('stopping');
      cancelProbes();
      // The admin listener reports `not ready` until the last response is sent.
      await open.stop(timeoutMs);
      await admin.stop();
      logger.info('stopped');
      await flushLog(logger);
    },
  };
}

async function servePublic(config: Config, logger: Logger) {
  const app = await createApp({ config, logger, metrics: createMetrics() });
  const upstreamAnswered = app.addStartChecks();
  const server = createHttpServer(app.handler, config, app.context, app.connections);
  const drain = createDrain(server);
  let isAccepting = false;
  app.readiness.register('listener', () => isAccepting);
  const url = await listenHttp(server, 'server', config.server);
  const addresses = await openListeners(app.listeners);
  isAccepting = true;
  return {
    url,
    addresses,
    app,
    upstreamAnswered,
    stop: async (timeoutMs = Infinity): Promise<void> => {
      isAccepting = false;
      // After an uncaught exception, which limits the time, the process is in an unknown state.
      if (timeoutMs === Infinity && config.server.shutdownDelayMs > 0)
        await pause(config.server.shutdownDelayMs);
      const withinMs = Math.min(timeoutMs, config.server.shutdownTimeoutMs);
      await Promise.all([{ drain }, ...app.listeners].map((listener) => listener.drain(withinMs)));
      await app.close();
    },
  };
}

async function serveAdmin(
  config: Config,
  { admin, context }: App,
  maxConnections: number,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const server = createAdminServer(admin, context, maxConnections);
  const drain = createDrain(server);
  const url = await listenHttp(server, 'admin', config.admin);
  return { url, stop: () => drain(0) };
}

function announce(config: Config, logger: Logger, addresses: Readonly<Record<string, string>>): void {
  const servers = upstreamServers(config).map(({ url: server }) => server);
  const upstream = servers.length === 0 ? config.upstream.url : servers.join(' ');
  logger.info({ ...addresses, upstream, version: VERSION }, 'listening');
  const proxies = describeOutgoingProxies();
  if (Object.keys(proxies).length > 0) logger.info(proxies, 'outgoing connections use a proxy');
}

/** Reads the configuration. @throws ConfigError when it is invalid */
type ReadConfig = () => StartConfig;

/** Creates the reload, which keeps the running configuration if the new one is invalid. */
export function createReload(
  config: Config,
  logger: Logger,
  apply: (config: Config) => void,
): (read: ReadConfig) => void {
  let running = config;
  return function reload(read) {
    // Assigned, because a child that is created with the level of its parent follows it.
    const before = Object.assign(logger.child({}), { level: logger.level });
    try {
      const next = read();
      const plan = planReload(running, next.config);
      assertNotChanged(plan.needRestart, next.atNextStart);
      const isFileRead = PLUGINS.some((each) => each.reloadsFile?.(plan.config));
      // A file may have been replaced since it was checked.
      if (plan.changed.length > 0 || isFileRead) apply(plan.config);
      running = plan.config;
      // At the more verbose of the old and new levels.
      logReload(plan, next, before.isLevelEnabled('info') ? before : logger);
    } catch (error) {
      logger.error({ reason: errorText(error) }, 'reload failed, keeping the current configuration');
    }
  };
}

/** @throws ConfigError for a wrong value that is new: a file that was cut may lack other keys, too */
function assertNotChanged(changed: readonly string[], atNextStart: StartConfig['atNextStart']): void {
  const isChanged = (wrong: string): boolean =>
    changed.some((key) => wrong === key || wrong.startsWith(`${key}.`));
  const problems = atNextStart.filter(({ key }) => key !== undefined && isChanged(key));
  if (problems.length > 0) throw new ConfigError(problems);
}

function logReload(
  { changed, needRestart }: ReloadPlan,
  { keys, atNextStart }: StartConfig,
  logger: Logger,
): void {
  const values = keys.filter(({ key }) => changed.includes(key)).map(shownValue);
  logger.info({ changed: Object.fromEntries(values) }, 'configuration reloaded');
  if (needRestart.length > 0) logger.warn({ keys: needRestart }, 'changed keys need a restart');
  for (const { key, text } of atNextStart) logger.warn({ key, reason: text }, 'the next start would fail');
}

/** Returns a key and its value without quotes, because the logger quotes it again. */
const shownValue = ({ key, shown }: ExplainedKey): [string, string] => [
  key,
  shown.replace(/^"(.*)"$/s, '$1'),
];

/** The changed keys, applied now or at the next start. */
interface ReloadPlan {
  config: Config;
  changed: string[];
  needRestart: string[];
}

export function planReload(running: Config, next: Config): ReloadPlan {
  const different = configKeys().filter(
    ({ parsedPath }) => !isDeepStrictEqual(valueAt(running, parsedPath), valueAt(next, parsedPath)),
  );
  const changed = different.filter(({ isReloadable }) => isReloadable);
  const needRestart = different.filter(({ isReloadable }) => !isReloadable).map(({ key }) => key);
  const config = changed.reduce<unknown>(
    (soFar, { parsedPath }) => withValue(soFar, parsedPath, valueAt(next, parsedPath)),
    running,
  ) as Config;
  return { config, changed: changed.map(({ key }) => key), needRestart };
}
