import { expect, test } from 'vitest';
import { States } from '../../src/process/cluster/worker-readiness.js';

test('the machine is ready as long as one worker is', () => {
  const states = new States();
  states.told(1, true, 0);
  states.told(2, false, 0);
  expect(states.isOneReady(0)).toBe(true);
  states.told(1, false, 10);
  expect(states.isOneReady(10)).toBe(false);
  states.told(2, true, 20);
  expect(states.isOneReady(20)).toBe(true);
  states.left(2);
  expect(states.isOneReady(20)).toBe(false);
});

test('a worker that says nothing for five seconds is not ready', () => {
  const states = new States();
  states.told(1, true, 1000);
  expect(states.isOneReady(5999)).toBe(true);
  expect(states.isOneReady(6000)).toBe(false);
});
