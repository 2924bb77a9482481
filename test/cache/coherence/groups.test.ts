// A gap in the numbers of a group shows that messages were missed.
import { expect, test } from 'vitest';
import { GROUPS, GroupNumbers, groupOf, hashOf } from '../../../src/cache/coherence/groups.js';

/** Numbers of a group whose state was read at 10. */
function readAt10(): GroupNumbers {
  const numbers = new GroupNumbers();
  numbers.adopt(1, { run: 'run', seq: 10 });
  return numbers;
}

test('a message that follows the one before was not preceded by a missed one', () => {
  const numbers = readAt10();
  expect([11, 12, 13].map((seq) => numbers.advance(1, seq))).toEqual([true, true, true]);
});

test('a message after a gap was, and the next one after it was not', () => {
  const numbers = readAt10();
  expect([12, 13].map((seq) => numbers.advance(1, seq))).toEqual([false, true]);
});

test('the first message of a group of which nothing is known was preceded by any number', () => {
  expect(new GroupNumbers().advance(1, 11)).toBe(false);
});

test('a message that the state contained already is no gap, and moves nothing back', () => {
  const numbers = readAt10();
  expect(numbers.advance(1, 9)).toBe(true);
  expect(numbers.advance(1, 10)).toBe(true);
  expect(numbers.advance(1, 11)).toBe(true);
});

test('each group has its numbers, and the bans have theirs', () => {
  const numbers = readAt10();
  expect(numbers.advance(2, 11)).toBe(false);
  expect(numbers.advance('bans', 11)).toBe(false);
  expect(numbers.advance(1, 11)).toBe(true);
});

test('a state with the known number is the same, and one with any other is not, also a lower one', () => {
  const numbers = readAt10();
  expect(numbers.adopt(1, { run: 'run', seq: 10 })).toBe(true);
  expect(numbers.adopt(1, { run: 'run', seq: 12 })).toBe(false);
  expect(numbers.adopt(1, { run: 'run', seq: 5 })).toBe(false);
  expect(numbers.advance(1, 6)).toBe(true);
});

test('the same number of another server run is not the same', () => {
  const numbers = readAt10();
  expect(numbers.adopt(1, { run: 'other', seq: 10 })).toBe(false);
  expect(numbers.advance(1, 11)).toBe(true);
});

// Known values of FNV-1a, 32 bits (draft-eastlake-fnv, appendix C).
test.each([
  ['', 0x811c9dc5],
  ['a', 0xe40c292c],
  ['foobar', 0xbf9cf968],
])('the hash of %j is that of FNV-1a', (key, hash) => {
  expect(hashOf(key)).toBe(hash);
});

test('keys are spread over all groups', () => {
  const groups = new Set(Array.from({ length: 20 * GROUPS }, (_, at) => groupOf(`21.T1/${at}`)));
  expect([groups.size, Math.min(...groups), Math.max(...groups)]).toEqual([GROUPS, 0, GROUPS - 1]);
});
