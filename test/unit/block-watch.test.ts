// The watch detects a blocked event loop by its missing beats. These tests use a manual clock.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { watchEventLoop } from '../../src/observe/health.js';

const BEAT_MS = 100;

let now: number;
const watches: ReturnType<typeof watchEventLoop>[] = [];

beforeEach(() => {
  now = 0;
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => {
  for (const watch of watches.splice(0)) watch.close();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Starts a watch, whose beats `hold` delays until `release`; `probe` returns the value shown by `/healthz`. */
function start(limitMs = 1000) {
  const watch = watchEventLoop(limitMs);
  watches.push(watch);
  const release = (): void => void vi.advanceTimersByTime(BEAT_MS);
  return {
    run: (ms: number): void => {
      for (const end = now + ms; now < end;) {
        now += BEAT_MS;
        release();
      }
    },
    hold: (ms: number): void => {
      now += BEAT_MS + ms;
    },
    release,
    probe: watch.blockedMs,
  };
}

describe('event loop watch', () => {
  test('reports no block for a running loop or garbage collection pauses', () => {
    const { run, hold, release, probe } = start();
    run(60_000);
    expect(probe()).toBeUndefined();
    for (let times = 0; times < 100; times++) {
      hold(200);
      expect(probe()).toBeUndefined();
      release();
      run(300);
    }
    hold(1000);
    expect(probe(), 'exactly the limit').toBeUndefined();
  });

  test('reports how long an ongoing block has lasted, without waiting for the overdue beat', () => {
    const { run, hold, probe } = start();
    run(5000);
    hold(24_000);
    expect(probe()).toBe(24_000);
  });

  test('reports a past block for ten seconds', () => {
    const { run, hold, release, probe } = start();
    hold(3000);
    release();
    expect(probe()).toBe(3000);
    run(9900);
    expect(probe()).toBe(3000);
    run(100);
    expect(probe()).toBeUndefined();
  });

  test('fails three consecutive probes only when each interval has a block', () => {
    const probesAfter = (periods: number) => {
      const { run, hold, release, probe } = start();
      return Array.from({ length: 3 }, (_, at) => {
        run(7000);
        if (at < periods) hold(1900);
        else run(2000);
        release();
        run(1000);
        return probe() !== undefined;
      });
    };
    expect(probesAfter(1)).toEqual([true, false, false]);
    expect(probesAfter(3)).toEqual([true, true, true]);
  });

  test('reports nothing without a limit', () => {
    const { hold, release, probe } = start(Infinity);
    hold(3_600_000);
    expect(probe()).toBeUndefined();
    release();
    expect(probe()).toBeUndefined();
  });
});
