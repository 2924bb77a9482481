// The frequent names of the last minutes, by a manual clock.
import { expect, test } from 'vitest';
import { createRecent } from '../../src/observe/recent.js';

const DAY_MS = 86_400_000;
const GENERATION_MS = 5 * 60_000;

test('names are forgotten after ten minutes, also after the wall clock was set back', () => {
  let now = 2 * DAY_MS;
  const recent = createRecent(() => now);
  const names = (): string[] => recent.handles().topHandles.map(({ name }) => name);
  recent.countHandle('early', 'hit');
  now -= DAY_MS;
  recent.countHandle('late', 'hit');
  expect(names()).toEqual(['early', 'late']);
  now += GENERATION_MS;
  expect(names()).toEqual(['late']);
  now += GENERATION_MS;
  expect(names()).toEqual([]);
});
