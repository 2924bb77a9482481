// Fits the bounds of client connections to the file limit of the process: each connection is an open file.
import { existsSync, readFileSync } from 'node:fs';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import type { Logger } from '../observe/logger.js';
import { MAX_REFERRED_CONNECTIONS } from '../upstream/referred-servers.js';

const LIMITS = '/proc/self/limits';

/** Node.js and the listeners have 22; Redis, native listeners, snapshots and a reload need some more. */
const PROCESS_FILES = 40;
/** For the admin listener: a process that is out of files must still be seen. */
const ADMIN_FILES = 24;

/** Node.js has raised it to the hard limit. Undefined where it is unlimited, or the system does not tell. */
export function readFileLimit(): number | undefined {
  const limits = existsSync(LIMITS) ? readFileSync(LIMITS, 'utf8') : '';
  const [, limit] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return limit === undefined ? undefined : Number(limit);
}

/** Files that are not those of clients: as many connections as are allowed to each server. */
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

/** The files that a process with this configuration may open; of unlimited connections none is counted. */
export const wantedFiles = (config: Config): number =>
  otherFiles(config) + config.server.maxConnections + nativeConnections(config);

const nativeConnections = ({ native: { tcp } }: Config): number =>
  tcp.port === undefined ? 0 : tcp.maxConnections;

/** With a low limit clients get what the rest leaves, and at least half: a server has seldom all its connections. */
function clientFiles(config: Config, limit: number): number {
  const spare = Math.max(2, limit - PROCESS_FILES);
  return Math.max(limit - otherFiles(config), Math.floor(spare / 2));
}

/**
 * The configuration with lower bounds where the limit needs them. Node.js cuts a connection for which no file is left
 * without an event, at the admin listener too; the bounds close idle ones first, and log what they close.
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
