// Fits the limits of client connections to the file limit, because each connection is an open file.
import { existsSync, readFileSync } from 'node:fs';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import { PLUGINS } from './plugins.js';
import type { Logger } from '../observe/logger.js';
import { MAX_ADMIN_CONNECTIONS } from '../server/connections.js';

const LIMITS = '/proc/self/limits';

/** Files used by the process itself: Node.js, listeners, Redis, files of plugins, a reload. */
const PROCESS_FILES = 40;

/** Reads the file limit, which Node.js has raised to the hard limit; undefined if unlimited or unknown. */
export function readFileLimit(): number | undefined {
  const limits = existsSync(LIMITS) ? readFileSync(LIMITS, 'utf8') : '';
  const [, limit] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return limit === undefined ? undefined : Number(limit);
}

/** Returns the files of the process, of the admin listener, and of connections to servers. */
function otherFiles(config: Config): number {
  const ofPlugins = PLUGINS.flatMap((plugin) => [
    plugin.connections?.(config) ?? 0,
    ...(plugin.servers?.(config) ?? []).map(({ connections }) => connections),
  ]);
  return upstreamServers(config).reduce(
    // Reads go to the server and its secondaries; forwarded requests go only to the server.
    (sum, { secondaries, connections }) => sum + (2 + secondaries.length) * connections,
    // The admin listener must stay reachable when clients use all their files.
    PROCESS_FILES + MAX_ADMIN_CONNECTIONS + ofPlugins.reduce((sum, connections) => sum + connections, 0),
  );
}

/** Returns the number of files that this configuration may open; unlimited client connections count as 0. */
export const wantedFiles = (config: Config): number =>
  otherFiles(config) + config.server.maxConnections + clientsOfPlugins(config);

const clientsOfPlugins = (config: Config): number =>
  PLUGINS.reduce((sum, { clients }) => sum + (clients?.most(config) ?? 0), 0);

/** Returns the files for clients: those that are left, but at least half, because pools are rarely full. */
function clientFiles(config: Config, limit: number): number {
  const spare = Math.max(2, limit - PROCESS_FILES);
  return Math.max(limit - otherFiles(config), Math.floor(spare / 2));
}

/** Returns the connections of the admin listener: at a low limit, half of what the clients leave. */
export const adminConnections = (limit = Infinity): number =>
  Math.min(MAX_ADMIN_CONNECTIONS, Math.max(1, Math.floor((limit - PROCESS_FILES) / 4)));

/**
 * Lowers the connection limits if the file limit requires it. Without free files, Node.js drops new
 * connections without an event, even on the admin listener. The limits instead close idle connections first,
 * and log when they drop new connections.
 */
export function fitToFileLimit(config: Config, limit: number | undefined, logger: Logger): Config {
  if (limit === undefined) return config;
  const { server } = config;
  const available = clientFiles(config, limit);
  const ofPlugins = clientsOfPlugins(config);
  const ofHttp = server.maxConnections === 0 ? Math.max(1, available - ofPlugins) : server.maxConnections;
  const isTooLow = ofHttp + ofPlugins > available;
  const fitted = (connections: number): number =>
    isTooLow ? Math.max(1, Math.floor((available * connections) / (ofHttp + ofPlugins))) : connections;
  const maxConnections = fitted(ofHttp);
  if (isTooLow) {
    const remedy = 'raise it (ulimit -n, LimitNOFILE= of systemd), or lower server.maxConnections';
    const fields = { fileLimit: limit, wanted: wantedFiles(config), maxConnections, remedy };
    logger.warn(fields, 'file limit too low, accepting fewer connections');
  }
  return PLUGINS.reduce<Config>(
    (soFar, { clients }) => {
      const most = clients?.most(soFar) ?? 0;
      return most === 0 ? soFar : (clients?.withMost(soFar, fitted(most)) ?? soFar);
    },
    { ...config, server: { ...server, maxConnections } },
  );
}
