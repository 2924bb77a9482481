// Entries from an instance with a fast clock.
import { describe, expect, test } from 'vitest';
import { withoutSkew } from '../../src/cache/entry.js';
import { NOW, entryOf } from '../support/store-contract.js';

const entry = entryOf('x', { staleAt: NOW + 1000, deleteAt: NOW + 5000 });

describe('entry corrected for clock skew', () => {
  test.each([0, 1, 3_600_000])('is unchanged when it was loaded %i ms ago', (agoMs) => {
    expect(withoutSkew(entry, NOW + agoMs)).toBe(entry);
  });

  test('has its load time limited to the present, and its lifetime preserved', () => {
    expect(withoutSkew(entry, NOW - 300)).toEqual(
      entryOf('x', { requestedAt: NOW - 300, staleAt: NOW + 700, deleteAt: NOW + 4700 }),
    );
  });

  test('stays stale by every clock when it was marked stale', () => {
    expect(withoutSkew({ ...entry, staleAt: 0 }, NOW - 300).staleAt).toBe(0);
  });
});
