// The simulation oracle: it applies an exception of the specification exactly as stated.
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
  test('permits instances other than the writer to serve records loaded before an unconfirmed write', () => {
    expect(history.oldest('other', 'h', 250, 150)).toBe(1);
    expect(history.oldest('other', 'h', 250, 200)).toBe(2);
  });

  test('requires the writing instance to serve the version that it acknowledged without Redis', () => {
    expect(history.oldest('writer', 'h', 400, 150)).toBe(3);
  });

  test('requires a confirmed write to supersede earlier loads', () => {
    expect(history.oldest('other', 'h', 250, 50)).toBe(1);
  });

  test('does not require other instances to serve a version that one instance acknowledged alone', () => {
    expect(history.oldest('other', 'h')).toBe(2);
  });
});
