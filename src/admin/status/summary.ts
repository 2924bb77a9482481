// Makes of what each worker saw what an operator reads.
import type { ActivityReport, Second, SeenError, UpstreamSecond } from '../../observe/activity.js';
import { type Percentiles, percentiles } from '../../observe/latency.js';
import { type Ranked, mergeRanked } from '../../observe/top-list.js';

export interface Summary {
  startedAt: string;
  uptimeSeconds: number;
  requests: {
    total: number;
    byResult: Record<string, number>;
    /** Of the last ten seconds. */
    perSecond: number;
    /** Part of the questions that the cache may answer and did, since the start; null before the first. */
    hitRatio: number | null;
    hitRatioLastMinute: number | null;
    /** Of the last minute. */
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
  recentErrors: SeenError[];
  /** The last minute, a point a second, oldest first. */
  history: Point[];
}

export interface Point {
  second: number;
  answers: number;
  hitRatio: number | null;
  p99Ms: number | null;
  upstreamAnswers: number;
  upstreamP99Ms: number | null;
  upstreamFailures: number;
}

const RATE_SECONDS = 10;
const MOST_RANKED = 20;
const MOST_ERRORS = 20;
const MINUTE = 60;

export function summarise(reports: readonly ActivityReport[], now: number): Summary {
  const seconds = mergeSeconds(reports);
  const byResult = sumCounts(reports.map(({ results }) => results));
  const startedAt = Math.min(now, ...reports.map((report) => report.startedAt));
  // The present second is not over.
  const second = Math.floor(now / 1000) - 1;
  const recent = seconds.filter((one) => one.second > second - RATE_SECONDS && one.second <= second);
  return {
    startedAt: new Date(startedAt).toISOString(),
    uptimeSeconds: Math.round((now - startedAt) / 1000),
    requests: {
      total: sum(byResult),
      byResult,
      perSecond: round(recent.reduce((all, { results }) => all + sum(results), 0) / RATE_SECONDS),
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
      MOST_RANKED,
    ),
    topMisses: mergeRanked(
      reports.map(({ topMisses }) => topMisses),
      MOST_RANKED,
    ),
    recentErrors: reports
      .flatMap(({ errors }) => errors)
      .sort((one, other) => (one.at < other.at ? 1 : -1))
      .slice(0, MOST_ERRORS),
    history: historyOf(seconds, second),
  };
}

const EMPTY: Omit<WholeSecond, 'second'> = { results: {}, latency: [], upstream: [], upstreamFailures: 0 };

function historyOf(seconds: readonly WholeSecond[], last: number): Point[] {
  const bySecond = new Map(seconds.map((second) => [second.second, second]));
  return Array.from({ length: MINUTE }, (_, at) => {
    const second = last - MINUTE + 1 + at;
    const { results, latency, upstream, upstreamFailures } = bySecond.get(second) ?? EMPTY;
    return {
      second,
      answers: sum(results),
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

/** Answers that came from what was kept, of all that could have. */
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
const sum = (counts: Record<string, number>): number => sumList(Object.values(counts));
const round = (rate: number): number => Math.round(rate * 10) / 10;
const total = <T>(list: readonly T[], of: (one: T) => number): number => sumList(list.map(of));
