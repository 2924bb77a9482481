import { expect, test } from 'vitest';
import { PoolReadiness, RestartBackoff } from '../../src/process/cluster/worker-readiness.js';

test('the machine is ready as long as one worker is', () => {
  const readiness = new PoolReadiness();
  readiness.report(1, true, 0);
  readiness.report(2, false, 0);
  expect(readiness.isReady(0)).toBe(true);
  readiness.report(1, false, 10);
  expect(readiness.isReady(10)).toBe(false);
  readiness.report(2, true, 20);
  expect(readiness.isReady(20)).toBe(true);
  readiness.remove(2);
  expect(readiness.isReady(20)).toBe(false);
});

test('a worker without a report for five seconds is not ready', () => {
  const readiness = new PoolReadiness();
  readiness.report(1, true, 1000);
  expect(readiness.isReady(5999)).toBe(true);
  expect(readiness.isReady(6000)).toBe(false);
});

const SHORT_MS = 0;
const LONG_MS = 60_000;

test('the restart delay of a crash-looping worker doubles up to a limit', () => {
  const backoff = new RestartBackoff();
  const delays = Array.from({ length: 7 }, () => backoff.delayMs(SHORT_MS));
  expect(delays).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
});

test('the delay starts again after a worker has run long enough', () => {
  const backoff = new RestartBackoff();
  for (let count = 0; count < 7; count++) backoff.delayMs(SHORT_MS);
  expect(backoff.delayMs(LONG_MS)).toBe(500);
  expect(backoff.delayMs(SHORT_MS)).toBe(1000);
});
