// Errors of Redis in the log: each reason once, then once a minute with a count.
import { expect, test } from 'vitest';
import { createTroubleReport } from '../../../src/cache/redis/errors.js';

function open() {
  const clock = { now: 0 };
  const reported: [reason: string, count: number][] = [];
  const reportTrouble = createTroubleReport(
    (...trouble) => reported.push(trouble),
    () => clock.now,
  );
  return {
    clock,
    reported,
    report: (reason: string) => {
      reportTrouble(new Error(reason));
    },
  };
}

test('a repeated error is reported once a minute, with the number of its repetitions', () => {
  const { clock, reported, report } = open();
  for (let at = 0; at <= 120_000; at += 500) {
    clock.now = at;
    report('NOPERM no permissions');
  }
  expect(reported).toEqual([
    ['NOPERM no permissions', 1],
    ['NOPERM no permissions', 120],
    ['NOPERM no permissions', 120],
  ]);
});

test('the growing pauses of a search for Sentinels are one reason', () => {
  const { reported, report } = open();
  for (const ms of [100, 200, 400])
    report(
      `All sentinels are unreachable. Retrying from scratch after ${ms}ms. Last error: Connection is closed.`,
    );
  expect(reported).toEqual([['All sentinels are unreachable. Last error: Connection is closed.', 1]]);
});

test('the slots that leave a node of a cluster are one reason', () => {
  const { reported, report } = open();
  for (const slot of [720, 866, 20]) report(`MOVED ${slot} 127.0.0.1:7000`);
  expect(reported).toEqual([['MOVED to 127.0.0.1:7000', 1]]);
});

test('each reason is reported without delay, but at most ten reasons a minute', () => {
  const { clock, reported, report } = open();
  for (let count = 0; count < 100; count++) report(`reason ${count}`);
  expect(reported.map(([reason]) => reason)).toEqual(
    Array.from({ length: 10 }, (_, count) => `reason ${count}`),
  );
  clock.now = 60_000;
  report('another');
  expect(reported.at(-1)).toEqual(['another', 1]);
});
