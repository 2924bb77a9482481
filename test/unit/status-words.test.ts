// What the status page makes of the statistics: levels, words and numbers as people read them.
import { describe, expect, test } from 'vitest';
import { judgeAll, judgeProcesses, judgeRedis, judgeServer } from '../../src/admin/status/browser/judge.js';
import { bytes, percent, span, time } from '../../src/admin/status/browser/numbers.js';

const server = (asked: number, failed: number, ...breakers: string[]) =>
  judgeServer({
    upstream: { servers: breakers.map((breaker) => ({ server: 'http://a.example', breaker })) },
    history: [
      { upstreamAnswers: asked, upstreamFailures: failed },
      { upstreamAnswers: 0, upstreamFailures: 0 },
    ],
  });
const well = server(10, 0, 'closed');
const redis = (state: string) => judgeRedis({ state });
const busy = (...delays: number[]) =>
  judgeProcesses(delays.map((eventLoopDelayMs) => ({ eventLoopDelayMs })));

describe('the Handle server', () => {
  test.each([
    ['answers', well, 'good', 'Answers'],
    ['was not asked', server(0, 0, 'closed'), 'good', 'Not asked'],
    ['failed once of many times', server(100, 1, 'closed'), 'warn', 'Unsteady'],
    ['failed half of the time', server(10, 5, 'closed'), 'bad', 'Failing'],
    ['is left alone', server(0, 0, 'open'), 'bad', 'Resting'],
    ['is left alone, but a mirror is not', server(10, 0, 'open', 'closed'), 'warn', 'Unsteady'],
  ])('%s', (_what, judged, level, word) => {
    expect(judged).toMatchObject({ level, word });
  });
});

describe('the line that is read from across the room', () => {
  test.each([
    ['All is well', 'good', well, redis('up'), busy(1, 2)],
    ['All is well', 'good', well, redis('unused'), busy(1)],
    ['Redis is away', 'warn', well, redis('away'), busy(1)],
    ['The proxy is very busy', 'warn', well, redis('up'), busy(1, 800)],
    ['No process answers', 'bad', server(0, 0), redis('unused'), busy()],
    ['The Handle server fails at times', 'warn', server(100, 1, 'closed'), redis('away'), busy(800)],
    ['The Handle server fails: what is kept stands in', 'bad', server(4, 4), redis('away'), busy(1)],
  ])('%s (%s)', (words, level, ...judged) => {
    expect(judgeAll(...judged)).toEqual([level, words]);
  });
});

test.each([
  [percent(null), ['–']],
  [percent(0.99996), ['99.9', '%']],
  [percent(1), ['100', '%']],
  [time(null), ['–']],
  [time(0.05), ['0.05', 'ms']],
  [time(1840), ['1.84', 's']],
  [bytes(0), ['0', 'KiB']],
  [bytes(12_300), ['12', 'KiB']],
  [bytes(3.5 * 1024 ** 2), ['3.5', 'MiB']],
  [bytes(20 * 1024 ** 3), ['20', 'GiB']],
])('%j reads as %j', (made, read) => {
  expect(made).toEqual(read);
});

test.each([
  [59, '59 s'],
  [61, '1 min 1 s'],
  [3720, '1 h 2 min'],
  [90_000, '1 d 1 h'],
])('%d seconds are %s', (seconds, words) => {
  expect(span(seconds)).toBe(words);
});
