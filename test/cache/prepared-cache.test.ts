// The prepared response cache: one memory bound for the responses of all interfaces.
import { beforeEach, describe, expect, test } from 'vitest';
import type { Entry } from '../../src/cache/entry.js';
import { type Prepared, PreparedCache, type PreparedName } from '../../src/cache/prepared-cache.js';
import { handleRef } from '../../src/handle/handle.js';

interface Answer extends Prepared {
  text: string;
}

const ENTRY = { requestedAt: 0, staleAt: 1000 } as Entry;
const ANSWER_BYTES = 5000;
const KEY = 'KEY';

/** State of the memory tier. */
const state = { stamp: 1, trustedSince: 0 };
beforeEach(() => {
  Object.assign(state, { stamp: 1, trustedSince: 0 });
});

const ON = { maxEntries: 1000, maxBytes: 1_000_000 };

function cacheOf(bounds = ON): PreparedCache {
  const memory = {
    pin: () => ({ at: 1, stamp: state.stamp }),
    touchIfCurrent: (_key: string, { stamp }: { stamp: number }) => stamp === state.stamp,
  };
  return new PreparedCache(bounds, { memory, trustedSince: () => state.trustedSince, onRepeat: [] });
}

const nameOf = (name: string): PreparedName<Answer> => name as PreparedName<Answer>;

const prepare = (
  cache: PreparedCache,
  name: string,
  dependency?: Prepared['dependency'],
  entry = ENTRY,
): Answer =>
  cache.prepare(nameOf(name), { handle: handleRef(KEY, false), entry, dependency }, (start, known) => ({
    ...start,
    bytes: ANSWER_BYTES,
    text: `${known?.text ?? ''}+`,
  }))!;
function textOf(cache: PreparedCache, name: string, now = 1): string | undefined {
  const prepared = cache.find(nameOf(name));
  return prepared && cache.use(prepared, now) ? prepared.text : undefined;
}

describe('prepared response cache', () => {
  test.each([
    ['entries', { ...ON, maxEntries: 4 }],
    // Two responses reach half of this bound.
    ['bytes', { ...ON, maxBytes: 4 * ANSWER_BYTES }],
  ])('evicts unused responses to store a new response within the bound on %s', (_what, bounds) => {
    const cache = cacheOf(bounds);
    prepare(cache, 'unused');
    prepare(cache, 'used');
    for (let round = 0; round < 5; round++) {
      prepare(cache, `${round}`);
      expect(textOf(cache, 'used')).toBe('+');
    }
    expect(textOf(cache, 'unused')).toBeUndefined();
  });

  test('stores nothing without room for an entry', () => {
    const cache = cacheOf({ ...ON, maxEntries: 0 });
    expect(prepare(cache, 'x').text).toBe('+');
    expect(textOf(cache, 'x')).toBeUndefined();
  });

  test('returns a response until its entry has changed, is stale or is distrusted', () => {
    const cache = cacheOf();
    prepare(cache, 'x');
    expect(textOf(cache, 'x')).toBe('+');
    expect(textOf(cache, 'x', 1000)).toBeUndefined();
    state.trustedSince = 1;
    expect(textOf(cache, 'x')).toBeUndefined();
    state.trustedSince = 0;
    expect(textOf(cache, 'x')).toBe('+');
    state.stamp = 2;
    expect(textOf(cache, 'x')).toBeUndefined();
  });

  test('returns a response only while the entries that it depends on are current', () => {
    const cache = cacheOf();
    const dependency = { isCurrent: (now: number) => now < 10 };
    prepare(cache, 'x', dependency);
    expect([textOf(cache, 'x', 9), textOf(cache, 'x', 10)]).toEqual(['+', undefined]);
  });

  test('extends an earlier response from the same entry, and replaces one from a different entry', () => {
    const cache = cacheOf();
    prepare(cache, 'x');
    expect(prepare(cache, 'x').text).toBe('++');
    state.stamp = 2;
    expect(prepare(cache, 'x').text).toBe('+');
  });

  test('passes a read to the resolver near the end of the TTL, and the next after five seconds (refresh ahead)', () => {
    const cache = cacheOf();
    prepare(cache, 'x', undefined, { ...ENTRY, staleAt: 60_000 });
    expect([53_999, 54_001, 54_002, 59_000, 59_001, 59_002].map((now) => textOf(cache, 'x', now))).toEqual([
      ...['+', undefined, '+', '+', undefined, '+'],
    ]);
  });
});
