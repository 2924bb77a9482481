// The parts of the core, which interfaces and plugins share.
import type { Cache } from './cache/cache.js';
import type { PreparedCache } from './cache/prepared-cache.js';
import type { Live } from './config/live.js';
import type { Config } from './config/schema.js';
import type { Context } from './context.js';
import type { MemoryBudget } from './http/request-body.js';
import type { Hits } from './observe/hits.js';
import type { Readiness } from './observe/health.js';
import type { Resolver } from './resolver/resolver.js';
import type { FindClient, IsTrustedProxy } from './http/client-address.js';
import type { TimeSlicer } from './time-slicer.js';
import type { createPools } from './upstream/connections.js';
import type { RefOf } from './upstream/routing.js';
import type { Upstreams } from './upstream/upstreams.js';
import type { OriginOf } from './write/origin-record.js';
import type { Statistics } from './observe/statistics.js';

/** The parts of the core, and what watches and operates them: all that interfaces and plugins share. */
export interface Host<Settings extends Config = Config> extends Context {
  readonly settings: Live<Settings>;
  readonly cache: Cache;
  readonly resolver: Resolver;
  readonly upstreams: Upstreams;
  readonly originOf: OriginOf;
  readonly refOf: RefOf;
  /** The prepared responses, which a reload replaces. */
  readonly preparedCache: Live<PreparedCache>;
  readonly hits: Hits;
  readonly isTrustedProxy: IsTrustedProxy;
  readonly findClient: FindClient;
  /** Name of this proxy in `Via`. */
  readonly pseudonym: string;
  /** Limits the work of all requests. */
  readonly slicer: TimeSlicer;
  /** Memory budget for request bodies. */
  readonly bodies: MemoryBudget;
  /** Memory budget for responses that clients have not read. */
  readonly unsent: MemoryBudget;
  /** Creates connections; undefined for undici pools. */
  readonly createDispatcher: typeof createPools | undefined;
  /** Returns `cache.staleIfError` for a key; do not keep it, because a reload may change it. */
  readonly staleIfErrorMs: (key: string) => number;
  /** Resolves once all plugins have put their records into memory. */
  readonly whenRestored: () => Promise<void>;
  readonly operations: Operations;
  /** Checks for `/readyz`. */
  readonly readiness: Readiness;
  /** Returns the duration (ms) of an event-loop block in the last 10 s; undefined if there was none. */
  readonly blockedMs: () => number | undefined;
}

/** Selects single handles, or all handles under a prefix; an empty prefix selects every handle. */
export type PurgeRequest = { isSoft: boolean } & ({ handles: readonly string[] } | { prefix: string });

interface PurgeResult {
  /** False while Redis is unavailable; Redis and the other instances are invalidated after it recovers. */
  isShared: boolean;
}

/** A cache entry of a handle. */
export interface CacheCopy {
  tier: 'memory' | 'redis';
  kind: 'found' | 'empty' | 'not-found';
  state: 'fresh' | 'stale' | 'none';
  ageSeconds: number;
  /** Remaining TTL; 0 if stale. */
  ttlSeconds: number;
  /** Time until the entry can no longer be served, even as stale. */
  staleIfErrorSeconds: number;
  bytes: number;
  /** Hits in the memory of this instance since the entry was stored. */
  hits?: number | undefined;
}

export interface Operations {
  purge: (request: PurgeRequest) => Promise<PurgeResult>;
  inspect: (handle: string) => Promise<CacheCopy[]>;
  stats: () => Promise<Statistics>;
  setLogLevel: (level: string) => void;
}
