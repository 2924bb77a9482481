// Operations of the admin API on all processes of this instance.
import type { MetricSnapshot } from '../observe/cluster-metrics.js';
import { type ProcessTraffic, type Traffic, trafficOf } from './traffic.js';
import { type ProcessReport, type Statistics, statisticsOf } from './statistics.js';

/** Handles, or all handles with the prefix; an empty prefix means every handle. */
export type PurgeRequest = { isSoft: boolean } & ({ handles: string[] } | { prefix: string });

interface PurgeResult {
  /** False while Redis is unavailable: Redis and other instances are invalidated when it is back. */
  isShared: boolean;
}

/** A cache entry of a handle, in one tier. */
export interface CacheCopy {
  tier: 'memory' | 'redis';
  /** The process, for the memory tier. */
  pid?: number;
  kind: 'found' | 'empty' | 'not-found';
  use: 'fresh' | 'stale' | 'none';
  ageSeconds: number;
  /** Remaining TTL; 0 when stale. */
  lifeLeftSeconds: number;
  /** Remaining time for which it may be served stale. */
  standInLeftSeconds: number;
  bytes: number;
  /** Hits in this process since it was stored. */
  hits?: number;
}

/** What became of the lines of an import. */
export interface ImportCounts {
  /** In memory now. */
  restored: number;
  /** Not needed: memory has a record of its own, or is full, or the record is too old to stand in. */
  kept: number;
  /** No records. */
  refused: number;
}

export interface ExportPage {
  /** Records, one a line. */
  lines: string;
  /** Where the next page begins; undefined at the end. */
  next?: number;
}

/** Controls one process, in this process or by message. */
export interface ProcessControl {
  purge: (request: PurgeRequest) => Promise<PurgeResult>;
  inspect: (handle: string) => Promise<CacheCopy[]>;
  report: () => Promise<ProcessReport>;
  traffic: () => Promise<ProcessTraffic>;
  /** Ends the limit of a network here and in Redis. @returns whether there was one */
  unblock: (network: string) => Promise<boolean>;
  setLogLevel: (level: string) => Promise<void>;
  importLines: (text: string) => Promise<ImportCounts>;
  exportPage: (page: { prefix: string; from: number }) => Promise<ExportPage>;
  metrics: () => Promise<MetricSnapshot>;
}

export interface Operations extends Pick<ProcessControl, 'purge' | 'inspect' | 'setLogLevel'> {
  stats: () => Promise<Statistics>;
  traffic: () => Promise<Traffic>;
  /** In all processes, and with Redis in all instances. @returns whether the network was limited */
  unblock: (network: string) => Promise<boolean>;
  /** Into the memory of each process. */
  importLines: (text: string) => Promise<ImportCounts>;
  /** The records of each process; one that several have is there as often. */
  exportRecords: (prefix: string) => AsyncGenerator<string>;
}

/** `processes` returns the running processes. A call rejects when a process does not respond in time. */
export function createOperations(processes: () => ProcessControl[], now: () => number): Operations {
  return {
    /** One process invalidates in all others. When it fails, the next one repeats the purge. */
    async purge(request) {
      let failure: unknown = new Error('no worker is running');
      for (const process of processes()) {
        try {
          return await process.purge(request);
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    },
    async inspect(handle) {
      const copies = (await fulfilled(processes().map((process) => process.inspect(handle)))).flat();
      const inMemory = copies.filter(({ tier }) => tier === 'memory');
      // All processes report the same entry of Redis.
      return [...inMemory, ...copies.filter(({ tier }) => tier === 'redis').slice(0, 1)];
    },
    async stats() {
      return statisticsOf(await fulfilled(processes().map((process) => process.report())), now());
    },
    async traffic() {
      return trafficOf(await fulfilled(processes().map((process) => process.traffic())));
    },
    async unblock(network) {
      return (await Promise.all(processes().map((process) => process.unblock(network)))).includes(true);
    },
    async importLines(text) {
      const [counts] = await Promise.all(processes().map((process) => process.importLines(text)));
      if (counts === undefined) throw new Error('no worker is running');
      return counts;
    },
    async *exportRecords(prefix) {
      for (const process of processes()) {
        for (let from: number | undefined = 0; from !== undefined;) {
          const { lines, next }: ExportPage = await process.exportPage({ prefix, from });
          if (lines !== '') yield lines;
          from = next;
        }
      }
    },
    async setLogLevel(level) {
      await Promise.all(processes().map((process) => process.setLogLevel(level)));
    },
  };
}

async function fulfilled<T>(promises: Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  return settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}
