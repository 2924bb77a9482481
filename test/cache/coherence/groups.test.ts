// Sequence numbers of groups: a gap means that messages were missed.
import { describe, expect, test } from 'vitest';
import { GROUPS, GroupNumbers, groupOf, hashOf } from '../../../src/cache/coherence/groups.js';

/** Returns the numbers of a group whose state was read at 10. */
function readAt10(): GroupNumbers {
  const numbers = new GroupNumbers();
  numbers.adopt(1, { run: 'run', seq: 10 });
  return numbers;
}

describe('group sequence numbers', () => {
  test('report no gap for consecutive messages', () => {
    const numbers = readAt10();
    expect([11, 12, 13].map((seq) => numbers.advance(1, seq))).toEqual([true, true, true]);
  });

  test('report a gap only once, for the first message that follows it', () => {
    const numbers = readAt10();
    expect([12, 13].map((seq) => numbers.advance(1, seq))).toEqual([false, true]);
  });

  test('report a gap for the first message of an unknown group', () => {
    expect(new GroupNumbers().advance(1, 11)).toBe(false);
  });

  test('report no gap for a message already in the state, and never decrease', () => {
    const numbers = readAt10();
    expect(numbers.advance(1, 9)).toBe(true);
    expect(numbers.advance(1, 10)).toBe(true);
    expect(numbers.advance(1, 11)).toBe(true);
  });

  test('are independent per group and for bans', () => {
    const numbers = readAt10();
    expect(numbers.advance(2, 11)).toBe(false);
    expect(numbers.advance('bans', 11)).toBe(false);
    expect(numbers.advance(1, 11)).toBe(true);
  });

  test('match only a state with the known number, not with a higher or lower one', () => {
    const numbers = readAt10();
    expect(numbers.adopt(1, { run: 'run', seq: 10 })).toBe(true);
    expect(numbers.adopt(1, { run: 'run', seq: 12 })).toBe(false);
    expect(numbers.adopt(1, { run: 'run', seq: 5 })).toBe(false);
    expect(numbers.advance(1, 6)).toBe(true);
  });

  test('do not match an equal number from a different server run', () => {
    const numbers = readAt10();
    expect(numbers.adopt(1, { run: 'other', seq: 10 })).toBe(false);
    expect(numbers.advance(1, 11)).toBe(true);
  });

  // Test vectors for 32-bit FNV-1a (draft-eastlake-fnv, appendix C).
  test.each([
    ['', 0x811c9dc5],
    ['a', 0xe40c292c],
    ['foobar', 0xbf9cf968],
  ])('are selected by the FNV-1a hash of the key: %j', (key, hash) => {
    expect(hashOf(key)).toBe(hash);
  });

  test('are selected evenly enough that many keys cover all groups', () => {
    const groups = new Set(Array.from({ length: 20 * GROUPS }, (_, at) => groupOf(`21.T1/${at}`)));
    expect([groups.size, Math.min(...groups), Math.max(...groups)]).toEqual([GROUPS, 0, GROUPS - 1]);
  });
});
