// The comparison of published changes with acknowledged writes.
import { expect, test } from 'vitest';
import { type Line, createPublished } from './published.js';

const GAP = { operation: 'gap' };
const line = (requestId: string) => ({ operation: 'update', requestId });

/** Three writes through one proxy, in sequence. */
function threeWrites() {
  const published = createPublished();
  ['first', 'second', 'third'].forEach((requestId, at) => {
    published.acknowledged({ requestId, by: 'a1', startedAt: at * 10, acknowledgedAt: at * 10 + 5 });
  });
  return (...lines: Line[]) =>
    published.missing(lines).map(({ requestId, isLast }) => ({ requestId, isLast }));
}

test('a missing write is found, unless a gap replaces it', () => {
  const missing = threeWrites();
  const [first, second, third] = [line('first'), line('second'), line('third')];
  const lacksSecond = [{ requestId: 'second', isLast: false }];
  expect(missing(first, second, third, second)).toEqual([]);
  expect(missing(first, third)).toEqual(lacksSecond);
  expect(missing(first, GAP, third)).toEqual([]);
  expect(missing(GAP, first, third)).toEqual(lacksSecond);
  expect(missing(first, third, GAP)).toEqual(lacksSecond);
  expect(missing(first, second)).toEqual([{ requestId: 'third', isLast: true }]);
});
