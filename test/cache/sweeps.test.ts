// Purges of many keys at once, as rules.
import { describe, expect, test } from 'vitest';
import { type Rule, Sweeps } from '../../src/cache/sweeps.js';
import { NOW, entryOf } from '../support/store-contract.js';

const rule = (number: number, prefix: string, isSoft = false): Rule => ({
  number,
  prefix,
  isSoft,
  at: NOW + 5,
});

describe('a sweep', () => {
  test('takes what is older and begins so, and nothing else', () => {
    const sweeps = new Sweeps();
    sweeps.add(rule(10, '21.T1/A'));
    expect(sweeps.apply('21.T1/ABC', entryOf('x'), 9)).toBeUndefined();
    expect(sweeps.apply('21.T1/ABC', entryOf('x'), 10)).toEqual(entryOf('x'));
    expect(sweeps.apply('21.T1/B', entryOf('x'), 9)).toEqual(entryOf('x'));
  });

  test('that is soft leaves it to stand in', () => {
    const sweeps = new Sweeps();
    sweeps.add(rule(10, '', true));
    expect(sweeps.apply('21.T1/A', entryOf('x'), 9)).toEqual(entryOf('x', { staleAt: NOW + 5 }));
  });

  test('that is hard wins over one that is soft, whichever came first', () => {
    const sweeps = new Sweeps();
    sweeps.add(rule(10, '21.T1/', false));
    sweeps.add(rule(11, '21.T1/A', true));
    expect(sweeps.apply('21.T1/A', entryOf('x'), 9)).toBeUndefined();
    expect(sweeps.apply('21.T1/A', entryOf('x'), 10)?.staleAt).toBe(NOW + 5);
  });

  test('is known once, and not again when a later one did as much', () => {
    const sweeps = new Sweeps();
    expect(sweeps.add(rule(10, '21.T1/A'))).toBe(true);
    expect(sweeps.add(rule(10, '21.T1/A'))).toBe(false);
    expect(sweeps.add(rule(12, '21.T1/'))).toBe(true);
    expect(sweeps.rules).toEqual([rule(12, '21.T1/')]);
    expect(sweeps.add(rule(11, '21.T1/B', true))).toBe(false);
  });

  test('that was dropped because there are too many counts for every key', () => {
    const sweeps = new Sweeps();
    for (let number = 1; number <= 201; number++) sweeps.add(rule(number, `21.T1/${number}-`));
    expect(sweeps.rules).toHaveLength(200);
    expect(sweeps.apply('21.T1/OTHER', entryOf('x'), 0)).toBeUndefined();
    expect(sweeps.isSince('21.T1/OTHER', 0)).toBe(true);
    expect(sweeps.apply('21.T1/OTHER', entryOf('x'), 1)).toEqual(entryOf('x'));
  });
});
