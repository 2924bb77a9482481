import { expect, test } from 'vitest';
import {
  ListenerBarrier,
  PoolReadiness,
  RestartBackoff,
} from '../../src/process/cluster/worker-readiness.js';

const pool = ({ maxEventLoopDelayMs = 1000 } = {}) => new PoolReadiness({ maxEventLoopDelayMs });

test('the pool is ready when every worker is, and then as long as one is', () => {
  const readiness = pool();
  readiness.report(1, [], 0);
  readiness.report(2, ['redis'], 0);
  expect(readiness.notReady(0), 'a request may reach the second one').toEqual(['redis']);
  readiness.report(2, [], 10);
  expect(readiness.notReady(10)).toEqual([]);
  readiness.report(1, ['event loop'], 20);
  expect(readiness.notReady(20)).toEqual([]);
  readiness.report(2, ['event loop'], 30);
  expect(readiness.notReady(30)).toEqual(['event loop']);
  readiness.report(2, [], 40);
  expect(readiness.notReady(40)).toEqual([]);
});

test('a worker that starts again does not make the pool unready', () => {
  const readiness = pool();
  readiness.report(1, [], 0);
  readiness.report(2, [], 0);
  expect(readiness.notReady(0)).toEqual([]);
  readiness.remove(2);
  readiness.started(2, 10);
  readiness.report(2, ['redis', 'upstream'], 20);
  expect(readiness.notReady(20)).toEqual([]);
});

test('a worker that has not reported yet is waited for', () => {
  const readiness = pool();
  readiness.report(1, [], 0);
  readiness.started(2, 0);
  expect(readiness.notReady(0)).toEqual(['listener']);
});

test('an answer of the upstream to the primary counts for all workers, also for those that start later', () => {
  const readiness = pool();
  readiness.report(1, ['upstream'], 0);
  readiness.report(2, ['upstream'], 0);
  expect(readiness.notReady(0)).toEqual(['upstream']);
  readiness.upstreamAnswered();
  expect(readiness.notReady(10)).toEqual([]);
  readiness.remove(1);
  readiness.report(2, ['upstream'], 20);
  expect(readiness.notReady(20)).toEqual([]);
});

test('what one worker can answer with counts for all workers', () => {
  const readiness = pool();
  readiness.report(1, [], 0);
  readiness.report(2, ['upstream'], 0);
  expect(readiness.notReady(0)).toEqual([]);
});

test('a worker without a report for five seconds is not ready', () => {
  const readiness = pool();
  readiness.report(1, [], 1000);
  expect(readiness.notReady(5999)).toEqual([]);
  expect(readiness.notReady(6000)).toEqual(['event loop']);
});

test('without a check of the event loop a silent worker is as ready as it was', () => {
  const readiness = pool({ maxEventLoopDelayMs: 0 });
  readiness.report(1, [], 0);
  expect(readiness.notReady(60_000)).toEqual([]);
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

test('stopping workers wait until the last of them has closed its listener or exited', () => {
  const barrier = new ListenerBarrier();
  for (const worker of [1, 2, 3]) barrier.expect(worker);
  expect(barrier.closed(2)).toEqual([]);
  expect(barrier.closed(1)).toEqual([]);
  expect(barrier.closed(3)).toEqual([2, 1, 3]);
});

test('a worker that ends alone waits for nobody', () => {
  const barrier = new ListenerBarrier();
  expect(barrier.closed(1)).toEqual([1]);
});

test('a worker that ends alone waits too once the others stop', () => {
  const barrier = new ListenerBarrier();
  barrier.expect(1);
  expect(barrier.closed(2)).toEqual([]);
  expect(barrier.closed(1)).toEqual([2, 1]);
});

test('a worker that stands still for longer than the limit fails the health of the pool, until a moment after', () => {
  const readiness = pool();
  readiness.started(1, 0);
  readiness.started(2, 0);
  for (let now = 400; now <= 2000; now += 400) readiness.report(1, [], now);
  for (let now = 400; now <= 6000; now += 400) readiness.report(2, [], now);
  expect(readiness.heldMs(3400)).toBeUndefined();
  expect(readiness.heldMs(5000)).toBe(2600);
  readiness.report(1, [], 6000);
  expect(readiness.heldMs(6000)).toBe(3600);
  for (let now = 6400; now <= 16_400; now += 400)
    for (const worker of [1, 2]) readiness.report(worker, [], now);
  expect(readiness.heldMs(15_999)).toBe(3600);
  expect(readiness.heldMs(16_000)).toBeUndefined();
});

test('a worker that is replaced holds nothing any more', () => {
  const readiness = pool();
  readiness.started(1, 0);
  expect(readiness.heldMs(60_000)).toBe(59_600);
  readiness.remove(1);
  expect(readiness.heldMs(60_000)).toBeUndefined();
  readiness.started(2, 60_000);
  expect(readiness.heldMs(60_000)).toBeUndefined();
});

test('without a limit no worker holds the pool', () => {
  const readiness = pool({ maxEventLoopDelayMs: 0 });
  readiness.started(1, 0);
  expect(readiness.heldMs(60_000)).toBeUndefined();
});
