// What the admin API does with this instance.
import type { Restoring } from '../cache/snapshot/restoring.js';
import type { RuleCounts, Statistics } from './statistics.js';

/** Handles, or all handles with the prefix; an empty prefix means every handle. */
export type PurgeRequest = { isSoft: boolean } & ({ handles: string[] } | { prefix: string });

interface PurgeResult {
  /** False while Redis is unavailable: Redis and other instances are invalidated when it is back. */
  isShared: boolean;
}

/** A cache entry of a handle, in one tier. */
export interface CacheCopy {
  tier: 'memory' | 'redis';
  kind: 'found' | 'empty' | 'not-found';
  use: 'fresh' | 'stale' | 'none';
  ageSeconds: number;
  /** Remaining TTL; 0 when stale. */
  lifeLeftSeconds: number;
  /** Remaining time for which it may be served stale. */
  standInLeftSeconds: number;
  bytes: number;
  /** Hits in this instance since it was stored. */
  hits?: number;
}

interface ClientCount {
  name: string;
  /** With refused requests. */
  misses: number;
}

export interface Traffic {
  rules: RuleCounts[];
  /** Of the last five to ten minutes, without responses from the response cache. */
  networks: ClientCount[];
  agents: ClientCount[];
  /** The one that ends last comes first. */
  blocked: { network: string; until: string; reason: string }[];
}

export interface Operations {
  purge: (request: PurgeRequest) => Promise<PurgeResult>;
  inspect: (handle: string) => Promise<CacheCopy[]>;
  stats: () => Promise<Statistics>;
  traffic: () => Promise<Traffic>;
  /** Ends the limit of a network here and in Redis. @returns whether there was one */
  unblock: (network: string) => Promise<boolean>;
  setLogLevel: (level: string) => void;
  /** Into memory. */
  importLines: Restoring['importLines'];
  /** The records in memory, some at a time. */
  exportRecords: (prefix: string) => AsyncGenerator<string>;
}
