// All Handle servers, and which of them is responsible for a handle.
import type { Config } from '../config/schema.js';
import type { ConfiguredServer } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { UpstreamClient } from './client.js';
import { type HandleServer, type HandleServerParts, createHandleServer } from './handle-server.js';
import { type FindServers, createPrefixRouting } from './prefix-routing.js';
import type { ReferralDeps } from './referral/referrals.js';
import { createReferredServers } from './referral/referred-servers.js';
import { routeReads } from './routing.js';
import { ROOT_KEYS, keysAt } from './server-keys.js';

export interface Upstreams {
  reads: UpstreamClient;
  /** The configured servers. */
  servers: readonly HandleServer[];
  /** Those that are responsible, the first one first. */
  findServers: FindServers<HandleServer>;
  /** The address of the server that is responsible; undefined for none here. */
  serverOf: (handle: string) => string | undefined;
  /** Whether each server of the handle checks the logins of reads. */
  checksLogins: (handle: string) => boolean;
  close: () => Promise<void>;
}

interface UpstreamsSettings extends Pick<Config, 'upstream'> {
  servers: readonly ConfiguredServer[];
}

interface UpstreamsParts extends HandleServerParts, Pick<ReferralDeps, 'findReferral'> {}

export function createUpstreams(
  { upstream, servers: configured }: UpstreamsSettings,
  context: Context,
  { findReferral, ...parts }: UpstreamsParts,
): Upstreams {
  const { caseSensitive, retryAfterMs, mirrorMaxTtlMs, followReferrals } = upstream;
  const ofAll = { caseSensitive, retryAfterMs, mirrorMaxTtlMs };
  const servers = configured.map((server) =>
    createHandleServer({ ...server, ...ofAll }, context, { ...parts, keysOf: (url) => keysAt(server, url) }),
  );
  const root = followReferrals ? (findRoot(servers) ?? createRoot(upstream, context, parts)) : undefined;
  const referred = followReferrals
    ? createReferredServers(upstream, context, { ...parts, findReferral })
    : undefined;
  const findServers = createPrefixRouting(servers, root);
  return {
    servers,
    findServers,
    reads: routeReads({ servers, findServers, root, readReferred: referred?.readReferred }),
    serverOf: (handle) => findServers(handle)[0]?.url,
    checksLogins: (handle) => findServers(handle).every(({ checksLogins }) => checksLogins),
    async close() {
      await Promise.all([...servers.map((server) => server.close()), root?.close(), referred?.close()]);
    },
  };
}

const findRoot = (servers: readonly HandleServer[]): HandleServer | undefined =>
  servers.find(({ prefixes }) => prefixes.includes('0.NA'));

function createRoot(upstream: Config['upstream'], context: Context, parts: HandleServerParts): HandleServer {
  const trust = { caFile: undefined, fingerprint: undefined };
  const server = {
    ...upstream,
    ...trust,
    url: upstream.referralRoot,
    mirrors: [],
    prefixes: [],
    readOnly: true,
  };
  return createHandleServer(server, context, { ...parts, keysOf: () => ROOT_KEYS });
}

/** As a Handle server refuses a prefix that is not its own (recording "create: prefix not homed here"). */
export function assertFound(server: HandleServer | undefined): HandleServer {
  if (server === undefined)
    throw new ServiceError('NOT_RESPONSIBLE', { message: "That prefix doesn't live here" });
  return server;
}
