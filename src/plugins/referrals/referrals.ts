// Finds prefix records through the cache, and reads handles from the servers that they name.
import { lookup } from 'node:dns';
import { type LookupFunction, isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import type { buildConnector } from 'undici';
import { NO_TRUST } from '../../config/schema-upstream.js';
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import type { HandleRef } from '../../handle/handle.js';
import type { Resolution } from '../../resolver/resolution.js';
import { valuesOf } from '../../resolver/parsed-records.js';
import { ConcurrencyLimiter } from '../../upstream/concurrency-limiter.js';
import { createConnector, createPools } from '../../upstream/connections.js';
import type { HandleRead, OriginServer, ServerSettings } from '../../upstream/contract.js';
import { PUBLIC_TRUST } from '../../upstream/failure.js';
import { HANDLE_SERVER } from '../../upstream/handle-server.js';
import { isRefusedElsewhere } from '../../upstream/routing.js';
import { createServer, type UpstreamServer } from '../../upstream/upstream-server.js';
import { createOriginServer } from '../../upstream/upstreams.js';
import {
  assertReferralLength,
  createReferrals,
  type Referral,
  referralIn,
  referralTo,
  type SiteAddress,
} from './follow.js';
import { CONNECTIONS, MAX_SERVERS, type ReferralsConfig } from './plugin.js';

export function start(host: Host, { upstream }: ReferralsConfig): Started {
  const { resolver, refOf, slicer, upstreams } = host;
  const configured = upstreams.servers.find(({ prefixes }) => prefixes.includes('0.NA'));
  const root = configured ?? createRoot(upstream, host);
  const servers = createReferredServers(upstream, host);
  /** Charges the parsing to the client of the read. */
  async function findReferral(handle: string, { caller }: HandleRead): Promise<Referral | undefined> {
    const resolution = await resolver.resolve(refOf(handle), { authoritative: false });
    // Before it waits for a slice, so that only short records wait.
    if (resolution.kind === 'entry') assertReferralLength(resolution.entry.values);
    const client = caller?.client ?? 'background';
    return slicer.run(() => referralOf(resolution), { client, isHolding: true });
  }
  const readReferred = createReferrals(upstream, findReferral, servers.serverAt);
  return {
    root,
    async read(read, next) {
      const outcome = await next();
      const isElsewhere = !read.noFallback && isReferable(read.handle) && isRefusedElsewhere(outcome);
      // The records of `kind: none` are only here: the server in the prefix record may be gone, or this proxy.
      return isElsewhere && upstreams.isServed(read.handle.key) ? readReferred(read) : outcome;
    },
    async close() {
      await Promise.all([root !== configured && root.close(), servers.close()]);
    },
  };
}

/** Whether a referral can exist. The root holds handles under `0.` and handles without a slash. */
const isReferable = ({ text }: HandleRef): boolean => text.indexOf('/') > 0 && !text.startsWith('0.');

/** Returns the referral in a prefix record or a refusal; undefined if the handle does not exist. */
function referralOf(resolution: Resolution): Referral | undefined {
  if (resolution.kind === 'refused') return referralIn({ ...resolution.refused, kind: 'refused' });
  const { entry } = resolution;
  if (entry.kind === 'not-found') return undefined;
  return referralTo(valuesOf(entry));
}

function createRoot(upstream: ReferralsConfig['upstream'], host: Host): OriginServer {
  const url = upstream.referralRoot;
  const keys = { ...PUBLIC_TRUST, url };
  return createOriginServer(settingsAt(url, upstream), host, host, host.upstreams.main?.url, () => keys);
}

// Connects to servers named in untrusted prefix records: only public addresses and verified certificates.

/** Maximum servers per prefix, so that a record that changes on every read cannot evict all other servers. */
const MAX_OF_PREFIX = 8;
/** Shared metric label, because untrusted prefix records must not create series. */
const REFERRED = 'referred';

/** Returns the settings of a Handle server whose address is not configured as an upstream. */
const settingsAt = (url: string, upstream: ReferralsConfig['upstream']): ServerSettings => ({
  ...upstream,
  kind: 'handle-server',
  key: 'upstream',
  url,
  source: HANDLE_SERVER,
  ...NO_TRUST,
  prefixes: [],
  existenceCheck: false,
  readOnly: true,
  secondaries: [],
});

function createReferredServers(upstream: ReferralsConfig['upstream'], host: Host) {
  const { pseudonym, slicer } = host;
  const open = new LRUCache<string, ReturnType<typeof openServer>>({ max: MAX_SERVERS });
  host.metrics.addServer(REFERRED);

  function openServer({ url, publicKey }: SiteAddress, prefix: string) {
    const { queue, queueTimeoutMs } = upstream;
    const connect = createReferredConnector(publicKey, upstream.referralsToPrivateNetworks);
    const dispatcher = createPools({ connections: CONNECTIONS }, connect);
    const limiter = new ConcurrencyLimiter({ concurrency: CONNECTIONS, queue, queueTimeoutMs });
    const access = { pseudonym, slicer, dispatcher, limiter };
    const server = createServer(settingsAt(url, upstream), host, access, undefined, REFERRED);
    return { server, dispatcher, prefix };
  }

  /** Returns the server at an address in the record of `prefix`; an evicted one completes its requests. */
  function serverAt(address: SiteAddress, prefix: string): UpstreamServer {
    const key = JSON.stringify([prefix, address]);
    const known = open.get(key);
    if (known !== undefined) return known.server;
    // From the most to the least recently used.
    const [evicted] = [...open].filter(([, server]) => server.prefix === prefix)[MAX_OF_PREFIX - 1] ?? [];
    if (evicted !== undefined) open.delete(evicted);
    const opened = openServer(address, prefix);
    open.set(key, opened);
    return opened.server;
  }

  return {
    serverAt,
    async close() {
      await Promise.all([...open.values()].map(({ dispatcher }) => dispatcher.destroy()));
    },
  };
}

/** Error `code` for an address in a private network. */
const PRIVATE_ADDRESS = 'ERR_REFERRAL_PRIVATE';
/** Error `code` for a certificate that neither an authority nor the site record confirms. */
const UNKNOWN_KEY = 'ERR_REFERRAL_KEY';

const CONNECT_MS = 5000;

function createReferredConnector(
  publicKey: SiteAddress['publicKey'],
  allowPrivateNetworks: boolean,
): buildConnector.connector {
  const connect = createConnector(
    // `isTrusted` verifies instead: Handle server certificates are self-signed with the site record's key.
    { rejectUnauthorized: false, maxCachedSessions: 0 },
    // An outgoing proxy gets the address that was checked, because it may resolve the name to another one.
    { lookup: allowPrivateNetworks ? undefined : lookupPublic },
    CONNECT_MS,
  );
  return function connectReferred(target, connected) {
    // An IP address in the URL bypasses the DNS lookup and its check.
    const address = target.hostname.replace(/^\[|\]$/g, '');
    if (!allowPrivateNetworks && isIP(address) !== 0 && isPrivate(address)) {
      connected(privateAddress(address), null);
      return;
    }
    connect(target, (...[error, socket]) => {
      if (error) connected(error, null);
      else if (target.protocol === 'https:' && !isTrusted(socket as TLSSocket, publicKey)) {
        socket.destroy();
        connected(
          Object.assign(new Error('certificate of an unknown authority and key'), { code: UNKNOWN_KEY }),
          null,
        );
      } else connected(null, socket);
    });
  };
}

function isTrusted(socket: TLSSocket, publicKey: SiteAddress['publicKey']): boolean {
  if (socket.authorized) return true;
  const certificate = socket.getPeerX509Certificate();
  if (certificate?.publicKey.asymmetricKeyType !== 'rsa' || publicKey?.format !== 'key') return false;
  const { n, e } = certificate.publicKey.export({ format: 'jwk' });
  const named = publicKey.value as { kty?: unknown; n?: unknown; e?: unknown } | null;
  return named?.kty === 'RSA' && named.n === n && named.e === e;
}

/** Resolves an untrusted host name to its public addresses only. */
const lookupPublic: LookupFunction = (host, options, found) => {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    const allowed = error ? [] : addresses.filter(({ address }) => !isPrivate(address));
    const [first] = allowed;
    if (first === undefined) found(error ?? privateAddress(host), '');
    else if (options.all === true) found(null, allowed);
    else found(null, first.address, first.family);
  });
};

const privateAddress = (host: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${host} is in a private network`), { code: PRIVATE_ADDRESS });

/** IPv4-compatible addresses (deprecated by RFC 4291 §2.5.5.1), which `ipaddr.js` classifies as public. */
const COMPATIBLE = ipaddr.IPv6.parseCIDR('::/96');

/** Azure's WireServer, an internal service with a public address. */
const AZURE_HOST = '168.63.129.16';

/**
 * Whether an address is not publicly routed per the IANA registries (RFC 6890) in `ipaddr.js`. Includes
 * site-local IPv6 addresses (RFC 3879) and translated, tunnelled or mapped IPv4 addresses.
 */
export function isPrivate(address: string): boolean {
  // Drops the zone of a link-local address. Inserts a zero, because ipaddr.js parses `::8.8.8.8` as 8.8.8.8.
  const plain = address.replace(/%.*/s, '').replace(/^::(?=\d+\.)/, '0::');
  const parsed = ipaddr.process(plain);
  if (parsed.range() !== 'unicast' || parsed.toString() === AZURE_HOST) return true;
  return parsed instanceof ipaddr.IPv6 && parsed.match(COMPATIBLE);
}
