import { describe, expect, it } from 'vitest';
import { LastDay } from '../../src/plugins/audit/audit.js';

const HOUR_MS = 3_600_000;

describe('counts of the last day', () => {
  it('include the current hour and the previous 23 hours', () => {
    let time = 1000 * HOUR_MS;
    const day = new LastDay(() => time);
    day.add('equal');
    time += HOUR_MS;
    day.add('equal');
    day.add('older');
    expect([day.total('equal'), day.total('older'), day.total('none')]).toEqual([2, 1, 0]);
    time += 22 * HOUR_MS;
    expect(day.total('equal')).toBe(2);
    time += HOUR_MS;
    expect(day.total('equal')).toBe(1);
    time += HOUR_MS;
    expect(day.total('equal')).toBe(0);
  });

  it('restart from 0 in an hour that replaces the same hour of the previous day', () => {
    let time = 1000 * HOUR_MS;
    const day = new LastDay(() => time);
    day.add('equal');
    time += 24 * HOUR_MS;
    day.add('equal');
    expect(day.total('equal')).toBe(1);
  });
});
