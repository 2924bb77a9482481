// The last minute of the status page: what happened between the readings of the statistics.
import { type Percentiles, histogramBetween, percentilesOf } from '../latency.js';
import { type Statistics, hitRatio } from '../statistics.js';

type Read = Pick<Statistics, 'requests' | 'upstream'>;

interface Reading {
  at: number;
  stats: Read;
}

interface Interval {
  hitRatio: number | null;
  requestsPerSecond: number;
  latency: Percentiles;
  upstream: { requests: number; failures: number; requestsPerSecond: number; latency: Percentiles };
}

export interface History {
  lastMinute: Interval;
  /** One interval for each second of the last minute with a reading, oldest first. */
  history: Interval[];
}

const MAX_AGE_MS = 60_000;

export function createHistory(monotonic: () => number): (stats: Read) => History {
  let readings: Reading[] = [];
  return function addToHistory(stats) {
    const newest = { at: monotonic(), stats };
    readings = [...readings.filter(({ at }) => newest.at - at <= MAX_AGE_MS), newest];
    return {
      lastMinute: between(readings[0] ?? newest, newest),
      history: readings.slice(1).map((newer, at) => between(readings[at] ?? newer, newer)),
    };
  };
}

function between({ at: from, stats: older }: Reading, { at: to, stats: newer }: Reading): Interval {
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
  older: Read['requests' | 'upstream'],
  newer: Read['requests' | 'upstream'],
): Percentiles => percentilesOf(histogramBetween(older.latency, newer.latency));

const round = (value: number): number => Math.round(value * 10) / 10;
