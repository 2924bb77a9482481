// Creates what follows referrals: a client for each server that a prefix record names.
import { toText } from '../handle/bytes.js';
import type { HandleValue } from '../handle/value.js';
import type { Resolution } from '../resolver/resolution.js';
import { ConcurrencyLimiter } from '../upstream/concurrency-limiter.js';
import { type ClosableDispatcher, createPools } from '../upstream/connections.js';
import { createReferredConnector } from '../upstream/referral/referred-connector.js';
import {
  type ReadReferred,
  type Referral,
  createReferrals,
  referralIn,
} from '../upstream/referral/referrals.js';
import type { SiteAddress } from '../upstream/referral/site-address.js';
import { type UpstreamServer, createServer } from '../upstream/upstream-server.js';
import { reportCalls } from './handle-server.js';
import type { SharedDeps } from './shared-deps.js';

/** Resolves a handle by the cache, anonymously. */
export type ResolveShared = (handle: string) => Promise<Resolution>;

export interface Referrals {
  readReferred: ReadReferred;
  close: () => Promise<void>;
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
/** In the metrics all of them are one: strangers' prefix records do not decide how many series there are. */
const METRICS_LABEL = 'referred';

export function makeReferrals(shared: SharedDeps, resolve: ResolveShared): Referrals {
  const open = new Map<string, ReferredServer & { prefix: string }>();
  shared.metrics.addServer(METRICS_LABEL);

  function serverAt(address: SiteAddress, prefix: string): UpstreamServer {
    const key = JSON.stringify([prefix, address]);
    const known = open.get(key);
    open.delete(key);
    if (known === undefined) forgetOne(prefix);
    const opened = known ?? { ...openServer(shared, address), prefix };
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

  return {
    readReferred: createReferrals({
      findReferral: async (handle) => referralOf(await resolve(handle)),
      serverAt,
      ports: shared.config.upstream.referralPorts,
      timeoutMs: shared.config.upstream.timeoutMs,
    }),
    async close() {
      await Promise.all([...open.values()].map(({ dispatcher }) => dispatcher.destroy()));
    },
  };
}

function openServer(shared: SharedDeps, { url, publicKey }: SiteAddress): ReferredServer {
  const { config, pseudonym, now } = shared;
  const report = reportCalls(shared);
  const { referralsToPrivateNetworks: allowPrivateNetworks, ...limits } = config.upstream;
  const connect = createReferredConnector({ publicKey, allowPrivateNetworks });
  const dispatcher = createPools({ connections: CONNECTIONS }, connect);
  const server = createServer({
    url,
    pseudonym,
    maxRecordBytes: limits.maxRecordBytes,
    slicer: shared.slicer,
    caseSensitive: limits.caseSensitive,
    dispatcher,
    breaker: { failures: limits.breaker.failures, openForMs: limits.breaker.openForMs },
    limiter: new ConcurrencyLimiter({
      concurrency: CONNECTIONS,
      queue: limits.queue,
      waitMs: limits.queueTimeoutMs,
    }),
    maxPauseMs: limits.maxRestMs,
    onCall: (call) => {
      report({ ...call, server: METRICS_LABEL });
    },
    now,
  });
  return { server, dispatcher };
}

function referralOf(resolution: Resolution): Referral | undefined {
  if (resolution.kind === 'refused') return referralIn({ ...resolution.refused, kind: 'refused' });
  const { entry } = resolution;
  if (entry.kind === 'not-found') return undefined;
  return { values: entry.kind === 'found' ? (JSON.parse(toText(entry.values)) as HandleValue[]) : [] };
}
