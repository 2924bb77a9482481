// One bound of memory for the prepared answers of all interfaces.
import { describe, expect, test } from 'vitest';
import type { Entry } from '../../src/cache/entry.js';
import { type Prepared, PreparedBudget, PreparedCache } from '../../src/cache/prepared-cache.js';

const ENTRY = { requestedAt: 0, staleAt: 1000 } as Entry;

/** Caches of answers of 10 bytes, with an entry for each handle. */
function cachesOf(names: string[], bounds: { maxEntries: number; maxBytes: number }) {
  const budget = new PreparedBudget(bounds);
  const memory = { pin: () => ({ at: 1, stamp: 1 }), touchIfCurrent: () => true };
  const deps = { budget, memory, keyOf: (handle: string) => handle, trustedSince: () => 0 };
  return names.map((name) => new PreparedCache<Prepared>(name, deps, () => 10));
}

const put = (cache: PreparedCache<Prepared>, name: string): void => {
  cache.set(name, cache.begin(name, ENTRY)!);
};
const has = (cache: PreparedCache<Prepared>, name: string): boolean => cache.current(name, 1) !== undefined;

describe('prepared response cache', () => {
  test.each([
    ['entries', { maxEntries: 4, maxBytes: 1000 }],
    ['bytes', { maxEntries: 1000, maxBytes: 40 }],
  ])('shares its bound of %s between interfaces, evicting unused entries first', (_what, bounds) => {
    const [http, native] = cachesOf(['http', 'native'], bounds) as [
      PreparedCache<Prepared>,
      PreparedCache<Prepared>,
    ];
    put(native, 'unused');
    put(native, 'used');
    for (let round = 0; round < 5; round++) {
      put(http, `${round}`);
      expect(has(native, 'used')).toBe(true);
    }
    expect(has(native, 'unused')).toBe(false);
  });

  test('counts a replacing cache instead of the replaced one', () => {
    const [before, after] = cachesOf(['http', 'http'], { maxEntries: 4, maxBytes: 1000 }) as [
      PreparedCache<Prepared>,
      PreparedCache<Prepared>,
    ];
    put(before, 'old');
    put(before, 'older');
    put(after, '1');
    put(after, '2');
    expect([before.youngEntries, after.youngEntries]).toEqual([2, 2]);
    put(after, '3');
    expect(after.youngEntries).toBe(0);
  });

  test('keeps nothing with 0 entries', () => {
    const [cache] = cachesOf(['http'], { maxEntries: 0, maxBytes: 1000 }) as [PreparedCache<Prepared>];
    put(cache, 'x');
    expect(has(cache, 'x')).toBe(false);
  });
});
