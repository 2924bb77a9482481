// The oracle of the simulation applies an exception of the specification no more widely than stated.
import { describe, expect, test } from 'vitest';
import { type Acknowledged, History } from './history.js';

const history = new History();
const acknowledge = (version: number, at: number, by: Acknowledged['by']): void => {
  history.acknowledged({ handle: 'h', version, instance: 'writer', at, by });
};
acknowledge(1, 100, 'confirmed');
acknowledge(2, 200, 'cut off');
acknowledge(3, 300, 'alone');

describe('history oracle', () => {
  test('ignores an acknowledgement without Redis for what another instance loaded before', () => {
    expect(history.oldest('other', 'h', 250, 150)).toBe(1);
    expect(history.oldest('other', 'h', 250, 200)).toBe(2);
  });

  test('applies it to the instance that wrote', () => {
    expect(history.oldest('writer', 'h', 400, 150)).toBe(3);
  });

  test('applies a confirmed one also to what was loaded before', () => {
    expect(history.oldest('other', 'h', 250, 50)).toBe(1);
  });

  test('hides from other instances what an instance acknowledged alone', () => {
    expect(history.oldest('other', 'h')).toBe(2);
  });
});
