// The time of cache entries, under wall clocks that are wrong, are set, or stand still.
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { createSteadyTime } from '../../src/clock.js';

const HOUR_MS = 3_600_000;

/** Both clocks of a machine, and the time made from them. */
function openClocks() {
  const clocks = { wall: 1_700_000_000_000, monotonic: 5000 };
  const now = createSteadyTime({ wall: () => clocks.wall, monotonic: () => clocks.monotonic });
  const pass = (ms: number): void => {
    clocks.wall += ms;
    clocks.monotonic += ms;
  };
  return { clocks, now, pass };
}

describe('steady time', () => {
  test('starts at the wall clock', () => {
    expect(openClocks().now()).toBe(1_700_000_000_000);
  });

  test('ignores a wall clock that is set back', () => {
    const { clocks, now, pass } = openClocks();
    clocks.wall -= HOUR_MS;
    pass(4000);
    expect(now()).toBe(1_700_000_004_000);
  });

  test.each([
    ['is suspended', { wall: HOUR_MS, monotonic: 0 }],
    ['has its wall clock set forward', { wall: HOUR_MS, monotonic: 0 }],
  ])(
    'passes by an hour when the machine %s for an hour, even after the clock was set back',
    (_what, step) => {
      const { clocks, now } = openClocks();
      clocks.wall -= 10 * HOUR_MS;
      now();
      clocks.wall += step.wall;
      clocks.monotonic += step.monotonic;
      expect(now()).toBe(1_700_000_000_000 + HOUR_MS);
    },
  );

  const events = fc.array(
    fc.oneof(
      fc.record({ pass: fc.integer({ min: 0, max: 5000 }) }),
      fc.record({ set: fc.integer({ min: -10 * HOUR_MS, max: 10 * HOUR_MS }) }),
      fc.record({ suspend: fc.integer({ min: 0, max: HOUR_MS }) }),
    ),
  );

  test.prop([events])('never steps back, and never runs slower than either passing time', (happened) => {
    const { clocks, now, pass } = openClocks();
    for (const event of happened) {
      const [before, wall, monotonic] = [now(), clocks.wall, clocks.monotonic];
      if ('pass' in event) pass(event.pass);
      else clocks.wall += 'set' in event ? event.set : event.suspend;
      const passed = now() - before;
      expect(passed).toBeGreaterThanOrEqual(clocks.monotonic - monotonic);
      // Smaller differences are noise of two clocks that are not read at the same moment.
      expect(passed).toBeGreaterThanOrEqual(clocks.wall - wall - 250);
    }
  });
});
