import { describe, expect, test } from 'vitest';
import {
  overallHealth,
  processHealth,
  redisHealth,
  serverHealth,
} from '../../src/plugins/admin/status/browser/health.js';
import { bytes, percent, span, time } from '../../src/plugins/admin/status/browser/format.js';

const server = (asked: number, failed: number, ...breakers: string[]) =>
  serverHealth({
    upstream: { servers: breakers.map((breaker) => ({ server: 'http://a.example', breaker })) },
    lastMinute: { upstream: { requests: asked, failures: failed } },
  });
const healthy = server(10, 0, 'closed');
const failingBefore = serverHealth({
  upstream: { servers: [{ server: 'http://a.example', breaker: 'closed', state: 'failing' }] },
  lastMinute: { upstream: { requests: 0, failures: 0 } },
});
const redis = (state: string) => redisHealth({ state });
const late = (delayMs: number) => processHealth({ eventLoopDelaySeconds: delayMs / 1000 });

describe('status page', () => {
  describe('Handle server health', () => {
    test.each([
      ['responds', healthy, 'good', 'Up'],
      ['gets no requests', server(0, 0, 'closed'), 'good', 'Idle'],
      ['fails rarely', server(100, 1, 'closed'), 'warn', 'Degraded'],
      ['fails half of the requests', server(10, 5, 'closed'), 'bad', 'Failing'],
      ['failed before the page was opened', failingBefore, 'warn', 'Degraded'],
      ['has an open breaker', server(0, 0, 'open'), 'bad', 'Circuit open'],
      ['has an open breaker but a working secondary', server(10, 0, 'open', 'closed'), 'warn', 'Degraded'],
    ])('has the expected level and word when the server %s', (_what, judged, level, word) => {
      expect(judged).toMatchObject({ level, word });
    });
  });

  describe('overall health', () => {
    test.each([
      ['Healthy', 'good', healthy, redis('up'), late(2)],
      ['Healthy', 'good', healthy, redis('disabled'), late(1)],
      ['Redis unavailable', 'warn', healthy, redis('down'), late(1)],
      ['Proxy overloaded', 'warn', healthy, redis('up'), late(800)],
      ['Handle server degraded', 'warn', server(100, 1, 'closed'), redis('down'), late(800)],
      ['Handle server failing: serving stale records', 'bad', server(4, 4), redis('down'), late(1)],
    ])('is "%s" (%s), like its worst component', (words, level, ...judged) => {
      expect(overallHealth(...judged)).toEqual([level, words]);
    });
  });

  test.each([
    [percent(null), ['–']],
    [percent(0.99996), ['99.9', '%']],
    [percent(1), ['100', '%']],
    [time(null), ['–']],
    [time(0.000_05), ['0.05', 'ms']],
    [time(0.012_345), ['12.3', 'ms']],
    [time(1.84), ['1.84', 's']],
    [bytes(0), ['0', 'KiB']],
    [bytes(12_300), ['12', 'KiB']],
    [bytes(3.5 * 1024 ** 2), ['3.5', 'MiB']],
    [bytes(20 * 1024 ** 3), ['20', 'GiB']],
  ])('formats a figure: %j equals %j', (made, read) => {
    expect(made).toEqual(read);
  });

  test.each([
    [59, '59 s'],
    [61, '1 min 1 s'],
    [3720, '1 h 2 min'],
    [90_000, '1 d 1 h'],
  ])('formats %d seconds as %s', (seconds, words) => {
    expect(span(seconds)).toBe(words);
  });
});
