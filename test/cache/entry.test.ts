// An entry of an instance whose clock is ahead.
import { describe, expect, test } from 'vitest';
import { withoutSkew } from '../../src/cache/entry.js';
import { NOW, entryOf } from '../support/store-contract.js';

const entry = entryOf('x', { staleAt: NOW + 1000, deleteAt: NOW + 5000 });

describe('an entry without the skew of its clock', () => {
  test.each([0, 1, 3_600_000])('is itself when it was loaded %i ms ago', (agoMs) => {
    expect(withoutSkew(entry, NOW + agoMs)).toBe(entry);
  });

  test('was loaded now at the latest, and lives as long as it was given', () => {
    expect(withoutSkew(entry, NOW - 300)).toEqual(
      entryOf('x', { requestedAt: NOW - 300, staleAt: NOW + 700, deleteAt: NOW + 4700 }),
    );
  });

  test('stays stale by every clock when it was made so', () => {
    expect(withoutSkew({ ...entry, staleAt: 0 }, NOW - 300).staleAt).toBe(0);
  });
});
