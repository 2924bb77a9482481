import { describe, expect, test } from 'vitest';
import { percentilesOf } from '../../src/observe/statistics.js';
import { createHistory } from '../../src/plugins/admin/history.js';

const histogram = (...counts: [number, number, number]) => ({
  count: counts[2],
  buckets: [
    { le: 0.001, count: counts[0] },
    { le: 0.01, count: counts[1] },
  ],
});

describe('latency statistics', () => {
  test.each([
    ['null without measurements', histogram(0, 0, 0), { p50: null, p95: null, p99: null }],
    [
      'interpolation within one bucket',
      histogram(100, 100, 100),
      { p50: 0.0005, p95: 0.000_95, p99: 0.000_99 },
    ],
    ['an empty bucket', histogram(0, 100, 100), { p50: 0.0055, p95: 0.009_55, p99: 0.009_91 }],
    ['the last bound for a value above it', histogram(50, 90, 100), { p50: 0.001, p95: 0.01, p99: 0.01 }],
  ])('compute percentiles: %s', (_what, given, percentiles) => {
    expect(percentilesOf(given)).toEqual(percentiles);
  });

  function statsOf(hits: number, misses: number) {
    const counted = { total: hits + misses, hits, misses, stale: 0 };
    return {
      requests: { ...counted, latency: histogram(hits, hits + misses, hits + misses) },
      upstream: { requests: misses, failures: 0, latency: histogram(0, misses, misses) },
    } as unknown as Parameters<ReturnType<typeof createHistory>>[0];
  }

  test('show the last minute as the difference between its first and last readings', () => {
    let time = 0;
    const add = createHistory(() => time);
    expect(add(statsOf(1000, 0))).toMatchObject({
      lastMinute: { hitRatio: null, requestsPerSecond: 0 },
      history: [],
    });
    time = 1000;
    add(statsOf(1003, 1));
    time = 3000;
    const { lastMinute, history } = add(statsOf(1003, 21));
    expect(lastMinute).toMatchObject({ hitRatio: 0.125, requestsPerSecond: 8, upstream: { requests: 21 } });
    expect(history).toMatchObject([
      { hitRatio: 0.75, requestsPerSecond: 4, latency: { p50: 0.000_667 } },
      { hitRatio: 0, requestsPerSecond: 10, latency: { p50: 0.0055 } },
    ]);
    time = 63_000;
    expect(add(statsOf(1003, 21)).history).toHaveLength(1);
  });
});
