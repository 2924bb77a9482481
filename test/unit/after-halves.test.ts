// The timeout of an exchange, in two halves, after each of which pending responses are read.
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { afterHalves } from '../../src/upstream/exchange.js';

/** Timers and immediates of both halves. */
const STEPS = 4;

function start() {
  const run = vi.fn();
  const cancel = afterHalves(1000, run);
  const advance = (steps: number): void => {
    for (let step = 0; step < steps; step++) vi.advanceTimersToNextTimer();
  };
  return { run, cancel, advance };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
  onTestFinished(() => void vi.useRealTimers());
});

test('a timeout in two halves ends once both have passed, and what was pending after each is read', () => {
  const { run, advance } = start();
  advance(STEPS - 1);
  expect(run).not.toHaveBeenCalled();
  advance(1);
  expect(run).toHaveBeenCalledOnce();
});

test.each([0, 1, 2, 3])(
  'a timeout in two halves that is cancelled after %i steps leaves no timer',
  (steps) => {
    const { run, cancel, advance } = start();
    advance(steps);
    expect(vi.getTimerCount()).toBe(1);
    cancel();
    expect(vi.getTimerCount()).toBe(0);
    advance(STEPS);
    expect(run).not.toHaveBeenCalled();
  },
);
