// Creates the Handle servers, and routes reads, writes and everything else to the one that is responsible.
import { upstreamServers } from '../config/upstream-servers.js';
import { ServiceError } from '../errors.js';
import { type RequestContext, contextOf } from '../http/context.js';
import { type ChecksLogin, identityOf } from '../http/identity.js';
import { readParameters } from '../http/query.js';
import type { RouteMatch } from '../http/route-table.js';
import { rawHandleOf, readHandle } from '../http/target.js';
import type { Forward } from '../record/forward.js';
import { isList } from '../record/record-request.js';
import type { UpstreamClient } from '../upstream/client.js';
import { type FindServers, createPrefixRouting } from '../upstream/prefix-routing.js';
import type { RecordClient } from '../upstream/record-client.js';
import { routeReads, routeRecords } from '../upstream/routing.js';
import { ROOT_KEYS, keysAt } from '../upstream/server-keys.js';
import { type HandleServer, makeHandleServer } from './handle-server.js';
import { type ResolveShared, makeReferrals } from './referrals.js';
import type { SharedDeps } from './shared-deps.js';

export interface Upstreams {
  reads: UpstreamClient;
  records: RecordClient;
  forward: Forward;
  /** The address of the server that is responsible; undefined for none here. */
  serverOf: (handle: string) => string | undefined;
  checksLogin: ChecksLogin;
  /** @throws ServiceError NOT_RESPONSIBLE, UPSTREAM_READ_ONLY */
  assertWritable: (handle: string) => void;
  /** To be called when a write of the handle was refused because its login was ignored; undefined over https. */
  onIgnoredLogin: (handle: string) => (() => void) | undefined;
  servers: readonly Pick<HandleServer, 'url' | 'usage'>[];
  close: () => Promise<void>;
}

/** `resolve` reads prefix records by the cache. */
export function makeUpstreams(shared: SharedDeps, resolve: ResolveShared): Upstreams {
  const servers = upstreamServers(shared.config).map((server) =>
    makeHandleServer(shared, server, (url) => keysAt(server, url)),
  );
  const { followReferrals } = shared.config.upstream;
  const root = followReferrals ? (findRoot(servers) ?? makeRoot(shared)) : undefined;
  const referrals = followReferrals ? makeReferrals(shared, resolve) : undefined;
  const findServers = createPrefixRouting(servers, root);
  return {
    servers,
    reads: routeReads({ servers, findServers, root, readReferred: referrals?.readReferred }),
    records: routeRecords(findServers),
    forward: (req, res, content) =>
      serverFor(contextOf(res), servers, findServers).forward(req, res, content),
    serverOf: (handle) => findServers(handle)[0]?.url,
    checksLogin(handle, authorization) {
      const asked = findServers(handle);
      const isChecked = asked.length > 0 && asked.every(({ checksLogins }) => checksLogins);
      return isChecked && identityOf(authorization) !== undefined;
    },
    assertWritable(handle) {
      const { readOnly } = assertFound(findServers(handle)[0]);
      if (readOnly) throw new ServiceError('UPSTREAM_READ_ONLY');
    },
    onIgnoredLogin: (handle) => findServers(handle)[0]?.onIgnoredLogin,
    async close() {
      await Promise.all([...servers.map((server) => server.close()), root?.close(), referrals?.close()]);
    },
  };
}

const findRoot = (servers: readonly HandleServer[]): HandleServer | undefined =>
  servers.find(({ prefixes }) => prefixes.includes('0.NA'));

function makeRoot(shared: SharedDeps): HandleServer {
  const { referralRoot: url, ...limits } = shared.config.upstream;
  const trust = { caFile: undefined, fingerprint: undefined };
  const server = { ...limits, ...trust, url, mirrors: [], prefixes: [], readOnly: true };
  return makeHandleServer(shared, server, () => ROOT_KEYS);
}

/** A list goes to the server of its prefix; what names no handle to the first server that takes writes. */
function serverFor(
  { handle, target, match }: RequestContext,
  servers: readonly HandleServer[],
  findServers: FindServers<HandleServer>,
): HandleServer {
  if (handle !== undefined) return assertFound(findServers(handle)[0]);
  const parameters = readParameters(target.query);
  const verified = match && handleToVerify(match);
  if (verified !== undefined) return assertFound(findServers(verified)[0]);
  const isListed = isList(rawHandleOf(target.path) ?? '-', parameters);
  if (isListed) return assertFound(findServers(`${parameters.get('prefix') ?? ''}/`)[0]);
  return assertFound(servers.find(({ readOnly }) => !readOnly) ?? servers[0]);
}

/** The handle of a verification, whose key is `300:21.T1/USER`. */
function handleToVerify({ routes, rest }: RouteMatch): string | undefined {
  if (rest === '' || routes[0]?.id !== 'verify') return undefined;
  return readHandle(rest).replace(/^\d+:/, '');
}

/** As a Handle server refuses a prefix that is not its own (recording "create: prefix not homed here"). */
function assertFound(server: HandleServer | undefined): HandleServer {
  if (server === undefined)
    throw new ServiceError('NOT_RESPONSIBLE', { message: "That prefix doesn't live here" });
  return server;
}
