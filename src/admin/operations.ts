// What an operator can have done, in one process or in all workers of a machine.
import type { ActivityReport } from '../observe/activity.js';
import type { MetricSnapshot } from '../observe/cluster-metrics.js';
import { type Summary, summarise } from './status/summary.js';

/** Handles one by one, or all that begin with `prefix` (all there are, when it is empty). */
export type PurgeOrder = { isSoft: boolean } & ({ handles: string[] } | { prefix: string });

export interface PurgeReport {
  /** False while Redis is away: other instances, and what Redis holds, are told when it is back. */
  isShared: boolean;
}

/** One copy of what is known of a handle. */
export interface Copy {
  tier: 'memory' | 'redis';
  /** The process that holds it, in memory. */
  pid?: number;
  kind: 'found' | 'empty' | 'not-found';
  use: 'fresh' | 'stale' | 'none';
  ageSeconds: number;
  /** Until the upstream has to be asked; 0 when it is stale. */
  lifeLeftSeconds: number;
  /** Until when it may stand in for a failing upstream. */
  standInLeftSeconds: number;
  bytes: number;
  /** How often it was asked for since it was kept, in this process. */
  hits?: number;
}

export interface StoreUse {
  store: 'found' | 'notFound';
  entries: number;
  bytes: number;
}

/** What one process knows of itself. */
export interface ProcessReport {
  pid: number;
  memory: StoreUse[];
  process: { rssBytes: number; heapUsedBytes: number; eventLoopDelayMs: number };
  redis: 'up' | 'away' | 'unused';
  running: number;
  waiting: number;
  logLevel: string;
  activity: ActivityReport;
}

/** One process, asked directly or by message. */
export interface Member {
  purge: (order: PurgeOrder) => Promise<PurgeReport>;
  look: (handle: string) => Promise<Copy[]>;
  report: () => Promise<ProcessReport>;
  setLogLevel: (level: string) => Promise<void>;
  metrics: () => Promise<MetricSnapshot>;
}

export type Stats = ReturnType<typeof statsOf>;

export interface Operations {
  purge: (order: PurgeOrder) => Promise<PurgeReport>;
  look: (handle: string) => Promise<Copy[]>;
  stats: () => Promise<Stats>;
  setLogLevel: (level: string) => Promise<void>;
}

/** `members` are those that answer now; whoever does not answer in time rejects. */
export function createOperations(members: () => Member[], now: () => number): Operations {
  return {
    /** One tells all others. What it could not finish the next begins anew. */
    async purge(order) {
      let failure: unknown = new Error('no worker is running');
      for (const member of members()) {
        try {
          return await member.purge(order);
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    },
    async look(handle) {
      const copies = (await answersOf(members().map((member) => member.look(handle)))).flat();
      const inMemory = copies.filter(({ tier }) => tier === 'memory');
      // Every worker sees the same Redis.
      return [...inMemory, ...copies.filter(({ tier }) => tier === 'redis').slice(0, 1)];
    },
    async stats() {
      return statsOf(await answersOf(members().map((member) => member.report())), now());
    },
    async setLogLevel(level) {
      await Promise.all(members().map((member) => member.setLogLevel(level)));
    },
  };
}

async function answersOf<T>(promises: Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises);
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

function statsOf(reports: readonly ProcessReport[], now: number) {
  const summary: Summary = summarise(
    reports.map(({ activity }) => activity),
    now,
  );
  const servers = [...new Set(reports.flatMap(({ activity }) => Object.keys(activity.breakers)))];
  const isOpen = (server: string): boolean =>
    reports.some(({ activity }) => activity.breakers[server] === 'open');
  return {
    ...summary,
    upstream: {
      ...summary.upstream,
      running: sum(reports, ({ running }) => running),
      waiting: sum(reports, ({ waiting }) => waiting),
      servers: servers.map((server) => ({ server, breaker: isOpen(server) ? 'open' : 'closed' })),
    },
    redis: { state: worst(reports.map(({ redis }) => redis)) },
    memory: sumByStore(reports.flatMap(({ memory }) => memory)),
    logLevel: reports[0]?.logLevel ?? null,
    workers: reports.map(({ pid, memory, process }) => ({ pid, memory, ...process })),
  };
}

function sumByStore(uses: readonly StoreUse[]): StoreUse[] {
  const sums = new Map<string, StoreUse>();
  for (const { store, entries, bytes } of uses) {
    const soFar = sums.get(store) ?? { store, entries: 0, bytes: 0 };
    sums.set(store, { store, entries: soFar.entries + entries, bytes: soFar.bytes + bytes });
  }
  return [...sums.values()];
}

const worst = (states: readonly ProcessReport['redis'][]): ProcessReport['redis'] =>
  states.includes('away') ? 'away' : (states[0] ?? 'unused');

const sum = <T>(list: readonly T[], of: (one: T) => number): number =>
  list.reduce((all, one) => all + of(one), 0);
