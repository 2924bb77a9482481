import { expect, test } from 'vitest';
import { Backoff } from '../../src/process/cluster/restart-backoff.js';

const SHORT_MS = 0;
const LONG_MS = 60_000;

test('a worker that ends again and again is replaced later each time, within a bound', () => {
  const backoff = new Backoff();
  const waits = Array.from({ length: 7 }, () => backoff.waitMs(SHORT_MS));
  expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
});

test('one that has served for a while is replaced soon again', () => {
  const backoff = new Backoff();
  for (let count = 0; count < 7; count++) backoff.waitMs(SHORT_MS);
  expect(backoff.waitMs(LONG_MS)).toBe(500);
  expect(backoff.waitMs(SHORT_MS)).toBe(1000);
});
