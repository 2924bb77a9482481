// Fits the bounds of client connections to the file limit of the process: each connection is an open file.
import { existsSync, readFileSync } from 'node:fs';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import type { Logger } from '../observe/logger.js';
import { MAX_REFERRED_CONNECTIONS } from '../upstream/referred-servers.js';

const LIMITS = '/proc/self/limits';

/** Files of the process itself: Node.js, listeners, Redis, snapshots, a reload. */
const PROCESS_FILES = 40;
/** Files of the admin listener, which must stay reachable when clients use all of theirs. */
const ADMIN_FILES = 24;

/** The file limit, which Node.js has raised to the hard limit. Undefined if it is unlimited or unknown. */
export function readFileLimit(): number | undefined {
  const limits = existsSync(LIMITS) ? readFileSync(LIMITS, 'utf8') : '';
  const [, limit] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return limit === undefined ? undefined : Number(limit);
}

/** Files that clients do not use: those of the process, and the maximum connections to each server. */
function otherFiles(config: Config): number {
  const { reverseLookup, upstream } = config;
  const ofReverse = reverseLookup.url === undefined ? 0 : 2 * upstream.connections;
  // The root, where a referral is looked up, is only read.
  const ofReferrals = upstream.followReferrals ? upstream.connections + MAX_REFERRED_CONNECTIONS : 0;
  return upstreamServers(config).reduce(
    // Reads at the server and at each mirror; forwarded requests at the server alone.
    (sum, { mirrors, connections }) => sum + (2 + mirrors.length) * connections,
    PROCESS_FILES + ADMIN_FILES + ofReverse + ofReferrals,
  );
}

/** Files that a process with this configuration may open; unlimited client connections count as none. */
export const wantedFiles = (config: Config): number =>
  otherFiles(config) + config.server.maxConnections + nativeConnections(config);

const nativeConnections = ({ native: { tcp } }: Config): number =>
  tcp.port === undefined ? 0 : tcp.maxConnections;

/** Files for clients: those that the rest leaves, but at least half, because upstream connections are rarely all open. */
function clientFiles(config: Config, limit: number): number {
  const spare = Math.max(2, limit - PROCESS_FILES);
  return Math.max(limit - otherFiles(config), Math.floor(spare / 2));
}

/**
 * Lowers the connection bounds if the file limit requires it. When no file is left, Node.js drops new connections without
 * an event, on the admin listener too; the bounds close idle connections first, and log what they close.
 */
export function fitToFileLimit(
  config: Config,
  limit: number | undefined,
  logger: Pick<Logger, 'warn'>,
): Config {
  if (limit === undefined) return config;
  const { server, native } = config;
  const available = clientFiles(config, limit);
  const ofNative = nativeConnections(config);
  const ofHttp = server.maxConnections === 0 ? Math.max(1, available - ofNative) : server.maxConnections;
  const isTooLow = ofHttp + ofNative > available;
  const fitted = (connections: number): number =>
    isTooLow ? Math.max(1, Math.floor((available * connections) / (ofHttp + ofNative))) : connections;
  const maxConnections = fitted(ofHttp);
  if (isTooLow) {
    const remedy = 'raise it (ulimit -n, LimitNOFILE= of systemd), or lower server.maxConnections';
    const fields = { fileLimit: limit, wanted: wantedFiles(config), maxConnections, remedy };
    logger.warn(fields, 'file limit too low, accepting fewer connections');
  }
  return {
    ...config,
    server: { ...server, maxConnections },
    native: { ...native, tcp: { ...native.tcp, maxConnections: fitted(native.tcp.maxConnections) } },
  };
}
