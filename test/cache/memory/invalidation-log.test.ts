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
    const log = new InvalidationLog();
    const before = log.currentMoment();
    log.add('A');
    const between = log.currentMoment();
    for (let at = 0; at < 99_999; at++) log.add(`B${at}`);
    expect(log.isInvalidatedSince('OTHER', before)).toBe(false);
    log.add('C');
    expect(log.isInvalidatedSince('A', before)).toBe(true);
    expect(log.isInvalidatedSince('A', between)).toBe(false);
    expect(log.isInvalidatedSince('OTHER', before)).toBe(true);
    expect(log.isInvalidatedSince('OTHER', log.currentMoment())).toBe(false);
  });
});
