// Opens the listeners, and closes them without losing a request.
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { type App, type AppDeps, createApp } from '../app.js';
import type { Config } from '../config/schema.js';
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
  return {
    url: open.url,
    adminUrl: admin.url,
    reload: createReload({ config, logger, apply: open.app.reload }),
    onUncaught: logUncaught(logger),
    async stop(timeoutMs) {
      logger.info('stopping');
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
  stop: (timeoutMs?: number) => Promise<void>;
}

/** Opens the public listener. */
export async function servePublic(
  config: Config,
  deps: Omit<AppDeps, 'config' | 'ca' | 'redisCa'>,
  drainOptions: DrainOptions = {},
): Promise<PublicService> {
  const app = createApp({
    config,
    ca: readPem(config.upstream.caFile),
    redisCa: readPem(config.redis.caFile),
    ...deps,
  });
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
    async stop(timeoutMs = Infinity) {
      isAccepting = false;
      await drain(Math.min(timeoutMs, config.server.shutdownTimeout));
      await app.close();
      await flushLog(deps.logger);
    },
  };
}

/** @throws Error when the file cannot be read */
export const readPem = (path: string | undefined): string | undefined =>
  path === undefined ? undefined : readFileSync(path, 'utf8');

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

/** Logs the addresses. */
export function announce(
  config: Config,
  logger: Logger,
  { url, adminUrl }: { url: string; adminUrl: string },
): void {
  const { url: upstream } = config.upstream;
  logger.info({ url, admin: adminUrl, upstream, version: VERSION }, 'listening');
}
