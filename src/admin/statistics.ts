// Statistics of the instance, from what its parts report.
import type {
  ActivityReport,
  Second,
  ServerState,
  RecentError,
  UpstreamSecond,
} from '../observe/activity.js';
import type { StoreUsage } from '../observe/metrics.js';
import { type Percentiles, percentiles } from '../observe/latency.js';
import type { Ranked } from '../observe/top-list.js';

export interface InstanceReport {
  version: string;
  memory: StoreUsage[];
  process: { pid: number; rssBytes: number; heapUsedBytes: number; eventLoopDelayMs: number };
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
const HISTORY_SECONDS = 60;

export function statisticsOf({ activity, running, waiting, redis, ...report }: InstanceReport, now: number) {
  const { version, memory, logLevel, process } = report;
  const { upstream, ...statistics } = requestStatistics(activity, now);
  const { breakers, servers } = activity;
  return {
    version,
    ...statistics,
    upstream: {
      ...upstream,
      running,
      waiting,
      servers: Object.entries(breakers).map(([server, state]) => ({
        server,
        breaker: state === 'open' ? 'open' : 'closed',
        ...(servers[server] ?? UNKNOWN),
      })),
    },
    redis: { state: redis },
    memory,
    logLevel,
    process,
  };
}

const UNKNOWN: ServerState = { state: 'unknown' };

function requestStatistics(activity: ActivityReport, now: number): RequestStatistics {
  const { startedAt, results: byResult, families: byInterface, upstream } = activity;
  const seconds = joinSeconds(activity);
  // The current second is incomplete.
  const second = Math.floor(now / 1000) - 1;
  const recent = seconds.filter((one) => one.second > second - RATE_SECONDS && one.second <= second);
  return {
    startedAt: new Date(startedAt).toISOString(),
    uptimeSeconds: Math.round((now - startedAt) / 1000),
    requests: {
      total: sumValues(byResult),
      byResult,
      byInterface,
      perSecond: rate(recent.map(({ results }) => sumValues(results))),
      hitRatio: hitRatio(byResult),
      hitRatioLastMinute: hitRatio(sumCounts(seconds.map(({ results }) => results))),
      latencyMs: percentiles(sumLists(seconds.map(({ latency }) => latency))),
    },
    upstream: {
      ...upstream,
      perSecond: rate(recent.map((one) => sumList(one.upstream))),
      latencyMs: percentiles(sumLists(seconds.map((one) => one.upstream))),
    },
    topHandles: activity.topHandles,
    topMisses: activity.topMisses,
    recentErrors: [...activity.errors].reverse(),
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

/** In a second without requests of clients there may be some of the upstream, and the other way round. */
function joinSeconds({ seconds, upstreamSeconds }: ActivityReport): WholeSecond[] {
  const bySecond = new Map<number, WholeSecond>();
  for (const part of [...seconds, ...upstreamSeconds]) {
    bySecond.set(part.second, { ...EMPTY, ...bySecond.get(part.second), ...part });
  }
  return [...bySecond.values()];
}

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
const rate = (counts: readonly number[]): number => Math.round((sumList(counts) / RATE_SECONDS) * 10) / 10;
