// Entries whose times are converted to a different clock.
import { describe, expect, test } from 'vitest';
import { shiftTimes } from '../../src/cache/entry.js';
import { NOW, entryOf } from '../support/store-contract.js';

const entry = entryOf('x', { staleAt: NOW + 1000, deleteAt: NOW + 5000 });

describe('entry converted to a different clock', () => {
  test('keeps its TTL', () => {
    expect(shiftTimes(entry, -300)).toEqual(
      entryOf('x', { requestedAt: NOW - 300, staleAt: NOW + 700, deleteAt: NOW + 4700 }),
    );
  });

  test('stays stale by every clock when it was marked stale', () => {
    expect(shiftTimes({ ...entry, staleAt: 0 }, 300).staleAt).toBe(0);
  });
});
