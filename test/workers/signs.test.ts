import { expect, test } from 'vitest';
import { Signs } from '../../src/workers/signs.js';

test('a worker is silent after three looks without a sign, until the next sign', () => {
  const signs = new Signs();
  signs.seen(1);
  signs.look();
  signs.look();
  expect(signs.isSilent(1)).toBe(false);
  signs.look();
  expect(signs.isSilent(1)).toBe(true);
  signs.seen(1);
  expect(signs.isSilent(1)).toBe(false);
});

test('nothing is said of a worker that is gone', () => {
  const signs = new Signs();
  signs.seen(1);
  for (let looks = 0; looks < 5; looks++) signs.look();
  signs.left(1);
  expect(signs.isSilent(1)).toBe(false);
});
