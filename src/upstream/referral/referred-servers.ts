// Follows referrals: a client for each server that a prefix record names.
import type { Config } from '../../config/schema.js';
import type { Context } from '../../context.js';
import type { TimeSlicer } from '../../time-slicer.js';
import { ConcurrencyLimiter } from '../concurrency-limiter.js';
import { type ClosableDispatcher, createPools } from '../connections.js';
import { REFERRED, type UpstreamServer, createServer } from '../upstream-server.js';
import { type ReadReferred, type ReferralDeps, createReferrals } from './referrals.js';
import { createReferredConnector } from './referred-connector.js';
import type { SiteAddress } from './site-address.js';

interface ReferredServers {
  readReferred: ReadReferred;
  close: () => Promise<void>;
}

interface ReferredParts extends Pick<ReferralDeps, 'findReferral'> {
  pseudonym: string;
  slicer: TimeSlicer;
}

interface ReferredServer {
  server: UpstreamServer;
  dispatcher: ClosableDispatcher;
}

/** Beyond this the one that was used least recently is forgotten. They are apart from the configured servers. */
const MAX_SERVERS = 256;
/** A record that changes with each read would fill all places alone. */
const MAX_OF_PREFIX = 8;
const CONNECTIONS = 16;

export function createReferredServers(
  upstream: Config['upstream'],
  context: Context,
  { findReferral, ...parts }: ReferredParts,
): ReferredServers {
  const open = new Map<string, ReferredServer & { prefix: string }>();
  context.metrics.addServer(REFERRED);

  function openServer({ url, publicKey }: SiteAddress): ReferredServer {
    const { referralsToPrivateNetworks: allowPrivateNetworks, queue, queueTimeoutMs } = upstream;
    const connect = createReferredConnector({ publicKey, allowPrivateNetworks });
    const dispatcher = createPools({ connections: CONNECTIONS }, connect);
    const limiter = new ConcurrencyLimiter({ concurrency: CONNECTIONS, queue, queueTimeoutMs });
    const ofServer = { ...parts, dispatcher, limiter, keys: undefined };
    return { server: createServer({ ...upstream, url }, context, ofServer), dispatcher };
  }

  function serverAt(address: SiteAddress, prefix: string): UpstreamServer {
    const key = JSON.stringify([prefix, address]);
    const known = open.get(key);
    open.delete(key);
    if (known === undefined) forgetOne(prefix);
    const opened = known ?? { ...openServer(address), prefix };
    // The one that was used least recently stays first.
    open.set(key, opened);
    return opened.server;
  }

  /** Makes room, first among those of the same prefix. Requests in flight end, and idle connections close by themselves. */
  function forgetOne(prefix: string): void {
    const own = [...open].filter(([, server]) => server.prefix === prefix);
    const [oldest] = own.length >= MAX_OF_PREFIX ? own : open.size >= MAX_SERVERS ? open : [];
    if (oldest !== undefined) open.delete(oldest[0]);
  }

  const { referralPorts: ports, timeoutMs } = upstream;
  return {
    readReferred: createReferrals({ findReferral, serverAt, ports, timeoutMs }),
    async close() {
      await Promise.all([...open.values()].map(({ dispatcher }) => dispatcher.destroy()));
    },
  };
}
