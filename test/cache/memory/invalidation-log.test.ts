import { describe, expect, test } from 'vitest';
import { InvalidationLog } from '../../../src/cache/memory/memory-store.js';

describe('invalidation log', () => {
  test('identifies tickets older than an invalidation', () => {
    const log = new InvalidationLog();
    const before = log.currentMoment();
    log.add('A');
    expect(log.isInvalidatedSince('A', before)).toBe(true);
    expect(log.isInvalidatedSince('B', before)).toBe(false);
    expect(log.isInvalidatedSince('A', log.currentMoment())).toBe(false);
  });

  test('issues newer tickets on advance() without invalidating any key', () => {
    const log = new InvalidationLog();
    const before = log.currentMoment();
    expect(log.startMoment()).toBeGreaterThan(before);
    expect(log.currentMoment()).toBeGreaterThan(before);
    expect(log.isInvalidatedSince('A', before)).toBe(false);
  });

  test('rejects every older ticket after it had to drop a key', () => {
    const log = new InvalidationLog(2);
    const before = log.currentMoment();
    for (const key of ['A', 'B', 'C']) log.add(key);
    expect(log.isInvalidatedSince('A', before)).toBe(true);
    expect(log.isInvalidatedSince('OTHER', before)).toBe(true);
    expect(log.isInvalidatedSince('OTHER', log.currentMoment())).toBe(false);
  });
});
