// Fences of several writers on one key, and their expiry.
import { describe, expect, test } from 'vitest';
import { Fences } from '../../../src/cache/coherence/fences.js';

/** Returns two fences on A and one on B, raised by two writers. The first fence on A expires at 10. */
function raised(): Fences {
  const fences = new Fences();
  fences.raise('A', 'one/0.1', 10);
  fences.raise('A', 'two/0.1', 20);
  fences.raise('B', 'two/0.2', 30);
  return fences;
}

describe('fences', () => {
  describe('on a key with two writers', () => {
    test('last until both writers have lowered their fence', () => {
      const fences = raised();
      fences.lower('A', 'one/0.1');
      expect(fences.isRaised('A')).toBe(true);
      fences.lower('A', 'two/0.1');
      expect(fences.isRaised('A')).toBe(false);
      expect(fences.keys().length).toBe(1);
    });

    test('remain when only one of them has expired', () => {
      const fences = raised();
      expect(fences.removeExpired('A', 9)).toBe(false);
      expect(fences.removeExpired('A', 10)).toBe(true);
      expect(fences.isRaised('A')).toBe(true);
      expect(fences.removeExpired('A', 20)).toBe(true);
      expect(fences.isRaised('A')).toBe(false);
    });

    test('make takeExpired return their key when the first has expired', () => {
      const fences = raised();
      expect(fences.takeExpired(9)).toBeUndefined();
      expect(fences.takeExpired(10)).toBe('A');
      expect(fences.takeExpired(10)).toBeUndefined();
    });
  });

  test.each(['changed', 'unchanged'] as const)('are lowered by a write with the outcome %s', (kind) => {
    const fences = raised();
    fences.track({ kind, key: 'B', fence: 'two/0.2' }, 5);
    expect(fences.keys()).toEqual(['A']);
  });

  test('remain after a write with an unknown outcome, for the time that it names', () => {
    const fences = raised();
    fences.track({ kind: 'unknown', key: 'B', fence: 'two/0.2', lifeMs: 40 }, 5);
    expect(fences.removeExpired('B', 44)).toBe(false);
    expect(fences.removeExpired('B', 45)).toBe(true);
  });

  test('remain unchanged when a fence is removed or lowered on a key that has none', () => {
    const fences = new Fences();
    fences.lower('A', 'one/0.1');
    expect([fences.removeExpired('A', 10), fences.takeExpired(10), fences.keys().length]).toEqual([
      false,
      undefined,
      0,
    ]);
  });

  test('move their key to the end of the expiry order when raised again', () => {
    const fences = raised();
    fences.raise('A', 'one/0.3', 40);
    // B is now first in the expiry order, and its fence expires at 30.
    expect(fences.takeExpired(15)).toBeUndefined();
    expect(fences.takeExpired(30)).toBe('B');
  });

  test('are removed for one member without affecting other members', () => {
    const fences = raised();
    expect(fences.keys()).toEqual(['A', 'B']);
    expect(fences.removeOf('three')).toEqual([]);
    expect(fences.removeOf('two')).toEqual(['A', 'B']);
    expect(fences.keys()).toEqual(['A']);
    expect(fences.removeOf('one')).toEqual(['A']);
    expect(fences.keys().length).toBe(0);
  });
});
