// Statistics of the instance: merges the reports of its processes.
import type {
  ActivityReport,
  Second,
  ServerState,
  RecentError,
  UpstreamSecond,
} from '../observe/activity.js';
import type { StoreUsage } from '../observe/metrics.js';
import { type Percentiles, percentiles } from '../observe/latency.js';
import { type Ranked, mergeRanked } from '../observe/top-list.js';

export interface ProcessReport {
  version: string;
  pid: number;
  memory: StoreUsage[];
  process: { rssBytes: number; heapUsedBytes: number; eventLoopDelayMs: number };
  redis: 'up' | 'away' | 'unused';
  running: number;
  waiting: number;
  logLevel: string;
  activity: ActivityReport;
}

export type Statistics = ReturnType<typeof statisticsOf>;

/** The part that comes from requests. */
interface RequestStatistics {
  startedAt: string;
  uptimeSeconds: number;
  requests: {
    total: number;
    byResult: Record<string, number>;
    /** Such as `record`, `redirect`, `native-udp`. */
    byInterface: Record<string, number>;
    /** Over the last ten seconds. */
    perSecond: number;
    /** Hits and stale hits among cacheable reads, since the start; null without any. */
    hitRatio: number | null;
    hitRatioLastMinute: number | null;
    /** Over the last minute. */
    latencyMs: Percentiles;
  };
  upstream: {
    requests: number;
    failures: number;
    perSecond: number;
    latencyMs: Percentiles;
  };
  topHandles: Ranked[];
  topMisses: Ranked[];
  recentErrors: RecentError[];
  /** One point per second of the last minute, oldest first. */
  history: HistoryPoint[];
}

interface HistoryPoint {
  second: number;
  answers: number;
  hitRatio: number | null;
  p99Ms: number | null;
  upstreamAnswers: number;
  upstreamP99Ms: number | null;
  upstreamFailures: number;
}

const RATE_SECONDS = 10;
const MAX_RANKED = 20;
const MAX_ERRORS = 20;
const HISTORY_SECONDS = 60;

/** Of the processes, one for which the server fails. */
const worstOf = (states: readonly (ServerState | undefined)[]): ServerState =>
  states.find((state) => state?.state === 'failing') ??
  states.find((state) => state?.state === 'working') ?? { state: 'unknown' };

export function statisticsOf(reports: readonly ProcessReport[], now: number) {
  const activities = reports.map(({ activity }) => activity);
  const statistics = mergeActivity(activities, now);
  const servers = [...new Set(activities.flatMap(({ breakers }) => Object.keys(breakers)))];
  const isOpen = (server: string): boolean => activities.some(({ breakers }) => breakers[server] === 'open');
  return {
    version: reports[0]?.version ?? null,
    ...statistics,
    upstream: {
      ...statistics.upstream,
      running: total(reports, ({ running }) => running),
      waiting: total(reports, ({ waiting }) => waiting),
      servers: servers.map((server) => ({
        server,
        breaker: isOpen(server) ? 'open' : 'closed',
        ...worstOf(activities.map((activity) => activity.servers[server])),
      })),
    },
    redis: { state: worstState(reports.map(({ redis }) => redis)) },
    memory: sumByStore(reports.flatMap(({ memory }) => memory)),
    logLevel: reports[0]?.logLevel ?? null,
    workers: reports.map(({ pid, memory, process }) => ({ pid, memory, ...process })),
  };
}

function sumByStore(usages: readonly StoreUsage[]): StoreUsage[] {
  const sums = new Map<string, StoreUsage>();
  for (const { store, entries, bytes } of usages) {
    const known = sums.get(store) ?? { store, entries: 0, bytes: 0 };
    sums.set(store, { store, entries: known.entries + entries, bytes: known.bytes + bytes });
  }
  return [...sums.values()];
}

const worstState = (states: readonly ProcessReport['redis'][]): ProcessReport['redis'] =>
  states.includes('away') ? 'away' : (states[0] ?? 'unused');

function mergeActivity(reports: readonly ActivityReport[], now: number): RequestStatistics {
  const seconds = mergeSeconds(reports);
  const byResult = sumCounts(reports.map(({ results }) => results));
  const startedAt = Math.min(now, ...reports.map((report) => report.startedAt));
  // The current second is incomplete.
  const second = Math.floor(now / 1000) - 1;
  const recent = seconds.filter((one) => one.second > second - RATE_SECONDS && one.second <= second);
  return {
    startedAt: new Date(startedAt).toISOString(),
    uptimeSeconds: Math.round((now - startedAt) / 1000),
    requests: {
      total: sumValues(byResult),
      byResult,
      byInterface: sumCounts(reports.map(({ families }) => families)),
      perSecond: round(recent.reduce((all, { results }) => all + sumValues(results), 0) / RATE_SECONDS),
      hitRatio: hitRatio(byResult),
      hitRatioLastMinute: hitRatio(sumCounts(seconds.map(({ results }) => results))),
      latencyMs: percentiles(sumLists(seconds.map(({ latency }) => latency))),
    },
    upstream: {
      requests: total(reports, ({ upstream }) => upstream.requests),
      failures: total(reports, ({ upstream }) => upstream.failures),
      perSecond: round(total(recent, ({ upstream }) => sumList(upstream)) / RATE_SECONDS),
      latencyMs: percentiles(sumLists(seconds.map(({ upstream }) => upstream))),
    },
    topHandles: mergeRanked(
      reports.map(({ topHandles }) => topHandles),
      MAX_RANKED,
    ),
    topMisses: mergeRanked(
      reports.map(({ topMisses }) => topMisses),
      MAX_RANKED,
    ),
    recentErrors: reports
      .flatMap(({ errors }) => errors)
      .sort((one, other) => (one.at < other.at ? 1 : -1))
      .slice(0, MAX_ERRORS),
    history: historyOf(seconds, second),
  };
}

const EMPTY: Omit<WholeSecond, 'second'> = { results: {}, latency: [], upstream: [], upstreamFailures: 0 };

function historyOf(seconds: readonly WholeSecond[], last: number): HistoryPoint[] {
  const bySecond = new Map(seconds.map((second) => [second.second, second]));
  return Array.from({ length: HISTORY_SECONDS }, (_, at) => {
    const second = last - HISTORY_SECONDS + 1 + at;
    const { results, latency, upstream, upstreamFailures } = bySecond.get(second) ?? EMPTY;
    return {
      second,
      answers: sumValues(results),
      hitRatio: hitRatio(results),
      p99Ms: percentiles(latency).p99,
      upstreamAnswers: sumList(upstream),
      upstreamP99Ms: percentiles(upstream).p99,
      upstreamFailures,
    };
  });
}

type WholeSecond = Second & UpstreamSecond;

function mergeSeconds(reports: readonly ActivityReport[]): WholeSecond[] {
  const bySecond = new Map<number, WholeSecond>();
  const parts = reports.flatMap(({ seconds, upstreamSeconds }) => [...seconds, ...upstreamSeconds]);
  for (const part of parts) {
    const known = bySecond.get(part.second);
    const whole = { ...EMPTY, ...part };
    bySecond.set(part.second, known === undefined ? whole : addSeconds(known, whole));
  }
  return [...bySecond.values()].sort((one, other) => one.second - other.second);
}

const addSeconds = (one: WholeSecond, other: WholeSecond): WholeSecond => ({
  second: one.second,
  results: sumCounts([one.results, other.results]),
  latency: sumLists([one.latency, other.latency]),
  upstream: sumLists([one.upstream, other.upstream]),
  upstreamFailures: one.upstreamFailures + other.upstreamFailures,
});

function hitRatio({ hit = 0, stale = 0, miss = 0 }: Partial<Record<string, number>>): number | null {
  const all = hit + stale + miss;
  return all === 0 ? null : Number(((hit + stale) / all).toFixed(4));
}

function sumCounts(counts: readonly Record<string, number>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [name, count] of counts.flatMap((one) => Object.entries(one))) {
    sums[name] = (sums[name] ?? 0) + count;
  }
  return sums;
}

function sumLists(lists: readonly (readonly number[])[]): number[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) => lists.reduce((all, list) => all + (list[at] ?? 0), 0));
}

const sumList = (list: readonly number[]): number => list.reduce((all, one) => all + one, 0);
const sumValues = (counts: Record<string, number>): number => sumList(Object.values(counts));
const round = (rate: number): number => Math.round(rate * 10) / 10;
const total = <T>(list: readonly T[], of: (one: T) => number): number => sumList(list.map(of));
