// The cost of a write is linear in the stored and sent values.
import { describe, expect, it, vi } from 'vitest';
import type { HandleValue } from '../../src/handle/value.js';
import { runToEnd } from '../../src/time-slicer.js';
import { groupsToSearch } from '../../src/v2/ownership.js';
import { adminValue, toRecord } from '../support/v2-values.js';

const identity = { handle: '21.T1/USER01', index: 300 };

const admins = (count: number, indexOf: (at: number) => number = (at) => at + 1): HandleValue[] =>
  Array.from({ length: count }, (_, at) =>
    adminValue(indexOf(at), { handle: `21.T1/user${at}`, index: 300 }),
  );

describe('ePIC v2 write over a record with thousands of administrators', () => {
  it('compares administrators in linear time', () => {
    const foldsFor = (count: number): number => {
      const folds = vi.spyOn(String.prototype, 'toUpperCase');
      const values = admins(count);
      const record = { values: [...values].reverse(), current: values };
      expect(runToEnd(groupsToSearch({ ...record, identity, automatic: identity }))).toBeUndefined();
      const { length } = folds.mock.calls;
      folds.mockRestore();
      return length;
    };
    expect(foldsFor(400)).toBeLessThanOrEqual(2 * foldsFor(200) + 10);
  });

  it('assigns free indexes to retained administrators in linear time', () => {
    const looksFor = (count: number): number => {
      const inputs = Array.from({ length: count }, (_, at) => ({
        idx: at + 1,
        type: 'URL',
        data: Buffer.from('x'),
        ttl: 1,
        references: [],
        permissions: '1110',
      }));
      const looks = vi.spyOn(Set.prototype, 'has');
      const values = toRecord(
        inputs,
        { index: 1, admin: identity, permissions: '111111111111' },
        admins(count),
      );
      const { length } = looks.mock.calls;
      looks.mockRestore();
      expect(new Set(values.map(({ index }) => index)).size).toBe(2 * count);
      return length;
    };
    expect(looksFor(400)).toBeLessThanOrEqual(2 * looksFor(200) + 10);
  });
});
