// Opens the listeners, and closes them without losing a request.
import type { RequestListener } from 'node:http';
import { type App, type AppDeps, createApp } from '../app.js';
import { createProbes } from '../compose/probes.js';
import type { StartChecks } from '../compose/start-checks.js';
import { startProbes } from '../compose/start-probes.js';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import { VERSION } from '../config/version.js';
import { type DrainOptions, createDrain } from '../server/drain.js';
import { createAdminServer, createHttpServer } from '../server/http-server.js';
import { type Logger, createLogger, flushLog } from '../observe/logger.js';
import { createMetrics } from '../observe/metrics.js';
import { listen } from './listen.js';
import { type ReadConfig, createReload } from './reload.js';

export interface Service {
  /** The public address, such as `http://127.0.0.1:8080`. */
  url: string;
  adminUrl: string;
  /** Stops accepting, completes requests in flight within `server.shutdownTimeout`, closes all connections. */
  stop: (timeoutMs?: number) => Promise<void>;
  /** Reads the configuration again and applies the keys that may change. */
  reload: (read: ReadConfig) => void;
  /** Logs an uncaught exception. */
  onUncaught: (error: unknown) => void;
}

export function logUncaught(logger: Logger): (error: unknown) => void {
  return (error) => {
    const err = error instanceof Error ? error : new Error(`thrown value: ${String(error)}`);
    logger.fatal({ err }, 'uncaught exception, exiting');
  };
}

/** Serves in a single process. @throws StartError when an address cannot be used */
export async function serve(
  config: Config,
  logger = createLogger({ level: config.log.level }),
): Promise<Service> {
  const open = await servePublic(config, { logger, metrics: createMetrics() });
  const admin = await serveAdmin(config, open.app.admin);
  announce(config, logger, { url: open.url, adminUrl: admin.url });
  const cancelProbes = probeAll(config, logger, open.checks);
  return {
    url: open.url,
    adminUrl: admin.url,
    reload: createReload({ config, logger, apply: open.app.reload }),
    onUncaught: logUncaught(logger),
    async stop(timeoutMs) {
      logger.info('stopping');
      cancelProbes();
      // The admin listener reports `not ready` until the last request is answered.
      await open.stop(timeoutMs);
      await admin.stop();
      logger.info('stopped');
      await flushLog(logger);
    },
  };
}

interface PublicService {
  url: string;
  app: App;
  checks: StartChecks;
  stop: (timeoutMs?: number) => Promise<void>;
}

/** Opens the public listener. */
export async function servePublic(
  config: Config,
  deps: Omit<AppDeps, 'config'>,
  drainOptions: DrainOptions = {},
): Promise<PublicService> {
  const app = createApp({ config, ...deps });
  const checks = app.addStartChecks();
  const server = createHttpServer(app.handler, {
    ...config.server,
    maxRequestLineBytes: config.http.maxRequestLine,
    onDropped: () => {
      deps.metrics.countDroppedConnection();
    },
  });
  const drain = createDrain(server, drainOptions);
  let isAccepting = false;
  app.readiness.register('listener', () => isAccepting);
  const url = await listen(server, 'server', config.server);
  isAccepting = true;
  return {
    url,
    app,
    checks,
    async stop(timeoutMs = Infinity) {
      isAccepting = false;
      await drain(Math.min(timeoutMs, config.server.shutdownTimeout));
      await app.close();
      await flushLog(deps.logger);
    },
  };
}

/** Opens the admin listener. */
export async function serveAdmin(
  config: Config,
  listener: RequestListener,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const server = createAdminServer(listener);
  const drain = createDrain(server);
  const url = await listen(server, 'admin', config.admin);
  return { url, stop: () => drain(0) };
}

/** Tries all servers; the result cancels it. */
export const probeAll = (
  config: Config,
  logger: Logger,
  { upstreamAnswered: onAnswered }: StartChecks,
): (() => void) => startProbes({ probes: createProbes(config), logger, onAnswered });

/** Logs the addresses. */
export function announce(
  config: Config,
  logger: Logger,
  { url, adminUrl }: { url: string; adminUrl: string },
): void {
  const upstream = upstreamServers(config)
    .map(({ url: server }) => server)
    .join(' ');
  logger.info({ url, admin: adminUrl, upstream, version: VERSION }, 'listening');
}
