// What the oracle demands of an answer: an exception of the specification is no wider than it says.
import { expect, test } from 'vitest';
import { type Acknowledged, History } from './history.js';

const history = new History();
const acknowledge = (version: number, at: number, by: Acknowledged['by']): void => {
  history.acknowledged({ handle: 'h', version, instance: 'writer', at, by });
};
acknowledge(1, 100, 'confirmed');
acknowledge(2, 200, 'cut off');
acknowledge(3, 300, 'alone');

test('an acknowledgement without Redis does not count for what another instance had loaded before', () => {
  expect(history.oldest('other', 'h', 250, 150)).toBe(1);
  expect(history.oldest('other', 'h', 250, 200)).toBe(2);
});

test('it counts for the instance that wrote', () => {
  expect(history.oldest('writer', 'h', 400, 150)).toBe(3);
});

test('a confirmed one counts for what was loaded before, too', () => {
  expect(history.oldest('other', 'h', 250, 50)).toBe(1);
});

test('the others do not know what an instance acknowledged alone', () => {
  expect(history.oldest('other', 'h')).toBe(2);
});
