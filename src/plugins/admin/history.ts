// Statistics of the last minute, from the differences between readings.
import { type Percentiles, type Statistics, hitRatio, percentilesOf } from '../../observe/statistics.js';

interface TimedFlow {
  at: number;
  stats: Statistics;
}

const MAX_AGE_MS = 60_000;

export function createHistory(monotonic: () => number) {
  let readings: TimedFlow[] = [];
  return function addToHistory(stats: Statistics) {
    const newest = { at: monotonic(), stats };
    readings = [...readings.filter(({ at }) => newest.at - at <= MAX_AGE_MS), newest];
    return {
      lastMinute: between(readings[0] ?? newest, newest),
      /** The intervals between successive readings of the last minute, oldest first. */
      history: readings.slice(1).map((newer, at) => between(readings[at] ?? newer, newer)),
    };
  };
}

function between({ at: from, stats: older }: TimedFlow, { at: to, stats: newer }: TimedFlow) {
  const perSecond = (count: number): number => (to > from ? round((count * 1000) / (to - from)) : 0);
  const since = (name: 'hits' | 'misses' | 'stale' | 'total'): number =>
    newer.requests[name] - older.requests[name];
  const requests = newer.upstream.requests - older.upstream.requests;
  return {
    hitRatio: hitRatio({ hits: since('hits'), misses: since('misses'), stale: since('stale') }),
    requestsPerSecond: perSecond(since('total')),
    latency: percentilesBetween(older.requests, newer.requests),
    upstream: {
      requests,
      failures: newer.upstream.failures - older.upstream.failures,
      requestsPerSecond: perSecond(requests),
      latency: percentilesBetween(older.upstream, newer.upstream),
    },
  };
}

const percentilesBetween = (
  { latency: older }: Statistics['requests' | 'upstream'],
  { latency: newer }: Statistics['requests' | 'upstream'],
): Percentiles =>
  percentilesOf({
    count: newer.count - older.count,
    buckets: newer.buckets.map(({ le, count }, at) => ({
      le,
      count: count - (older.buckets[at]?.count ?? 0),
    })),
  });

const round = (value: number): number => Math.round(value * 10) / 10;
