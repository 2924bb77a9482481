import { describe, expect, test } from 'vitest';
import type { MemoryBounds } from '../../src/cache/lists.js';
import { type MemoryOptions, MemoryStore } from '../../src/cache/memory-store.js';
import { Fences } from '../../src/cache/fences.js';
import type { Held } from '../../src/cache/slots.js';
import { toBytes } from '../../src/handle/bytes.js';
import { NOW, entryOf, storeContract } from '../support/store-contract.js';

const bounds = { maxBytes: 1_000_000, found: { maxEntries: 100 }, notFound: { maxEntries: 100 } };
function open(
  more: Partial<MemoryBounds> = {},
  onEvict: MemoryOptions['onEvict'] = () => undefined,
): MemoryStore {
  return new MemoryStore({ bounds: { ...bounds, ...more }, fenceLifeMs: 1000, now: () => NOW, onEvict });
}

const notFound = entryOf('', { kind: 'not-found', values: toBytes('') });

function put(store: MemoryStore, key: string, entry = entryOf(key)): boolean {
  return store.set(key, entry, store.get(key).ticket);
}

function heldIn(store: MemoryStore, key: string): Held {
  const held = store.hold(key, entryOf(key));
  if (held === undefined) throw new Error('it is not kept');
  return held;
}

describe('the memory store', () => {
  storeContract(() => {
    const store = open();
    return Promise.resolve({ store, close: () => Promise.resolve() });
  });

  test('keeps at most so many records, the least recently used leave', () => {
    const evicted: string[] = [];
    const store = open({ found: { maxEntries: 2 } }, (which) => evicted.push(which));
    put(store, 'A');
    put(store, 'B');
    store.peek('A');
    put(store, 'C');
    expect(['A', 'B', 'C'].map((key) => store.peek(key) !== undefined)).toEqual([true, false, true]);
    expect(evicted).toEqual(['found']);
  });

  test('keeps at most so many bytes', () => {
    const store = open({ maxBytes: 10_000 });
    for (let at = 0; at < 50; at++) put(store, `KEY${at}`, entryOf('x'.repeat(500)));
    const [found] = store.usage();
    expect(found?.bytes).toBeLessThanOrEqual(10_000);
    expect(found?.entries).toBeGreaterThan(5);
  });

  test('refuses an entry larger than all of it', () => {
    const store = open({ maxBytes: 10_000 });
    expect(put(store, 'BIG', entryOf('x'.repeat(20_000)))).toBe(false);
  });

  test('loses no record to a flood of unknown names', () => {
    const store = open({ maxBytes: 100_000, found: { maxEntries: 10 }, notFound: { maxEntries: 10 } });
    put(store, 'RECORD');
    for (let at = 0; at < 10_000; at++) put(store, `UNKNOWN${at}`, notFound);
    expect(store.peek('RECORD')).toBeDefined();
    expect(store.usage().map(({ entries }) => entries)).toEqual([1, 10]);
  });

  test('counts how often an entry was looked at since it was stored', () => {
    const store = open();
    put(store, 'A');
    store.peek('A');
    store.peek('A');
    expect(store.hits('A')).toBe(2);
    put(store, 'A');
    expect(store.hits('A')).toBe(0);
  });

  test.each<[string, (store: MemoryStore) => unknown]>([
    [
      'forgotten',
      (store) => {
        store.forget('A');
      },
    ],
    [
      'softened',
      (store) => {
        store.soften('A');
      },
    ],
    [
      'invalidated by a write',
      (store) => {
        void store.fence('A').changed();
      },
    ],
    [
      'left stale by a write whose outcome is unknown',
      (store) => {
        void store.fence('A').unknown();
      },
    ],
    ['replaced', (store) => put(store, 'A', entryOf('new'))],
    ['found to be missing', (store) => put(store, 'A', notFound)],
    [
      'purged with all others',
      (store) => {
        store.sweep({ prefix: '', isSoft: false });
      },
    ],
    [
      'purged by its prefix',
      (store) => {
        store.sweep({ prefix: 'A', isSoft: true });
      },
    ],
    [
      'distrusted',
      (store) => {
        store.distrust(NOW);
      },
    ],
    ['evicted', (store) => Array.from({ length: 100 }, (_, at) => put(store, `KEY${at}`))],
  ])('knows by the place it holds that the entry was %s', (_how, change) => {
    const store = open();
    put(store, 'A');
    const held = heldIn(store, 'A');
    expect(store.look('A', held)).toBe(true);
    change(store);
    expect(store.look('A', held)).toBe(false);
  });

  test('holds no other entry than the one it is asked to hold', () => {
    const store = open();
    expect(store.hold('A', entryOf('A'))).toBeUndefined();
    put(store, 'A');
    expect(store.hold('A', entryOf('B'))).toBeUndefined();
    expect(store.hold('A', entryOf('A', { cachedAt: NOW - 1 }))).toBeUndefined();
    expect(store.hold('A', entryOf('A'))).toBeDefined();
  });

  test('does not take an entry for the one that was held in its place', () => {
    const store = open();
    put(store, 'A');
    const held = heldIn(store, 'A');
    store.forget('A');
    put(store, 'B');
    put(store, 'A');
    expect(store.look('A', held)).toBe(false);
    store.sweep({ prefix: '', isSoft: false });
    put(store, 'A');
    expect(store.look('A', held)).toBe(false);
  });

  test('holds an entry while a write is in flight, and after it was refused', () => {
    const store = open();
    put(store, 'A');
    const held = heldIn(store, 'A');
    const fence = store.fence('A');
    expect(store.look('A', held)).toBe(true);
    void fence.unchanged();
    expect(store.look('A', held)).toBe(true);
  });

  test('holds an entry no longer than the fence of a writer that died', () => {
    let now = NOW;
    const store = new MemoryStore({ bounds, fenceLifeMs: 1000, now: () => now });
    put(store, 'A');
    const held = heldIn(store, 'A');
    store.fence('A');
    now = NOW + 999;
    expect(store.look('A', held)).toBe(true);
    now = NOW + 1000;
    expect(store.look('A', held)).toBe(false);
  });

  test('keeps what is used by the place it is held at, while others come and go', () => {
    const store = open({ found: { maxEntries: 100 } });
    for (let at = 0; at < 100; at++) put(store, `KEY${at}`);
    const held = heldIn(store, 'KEY0');
    for (let at = 100; at < 1000; at++) {
      expect(store.look('KEY0', held)).toBe(true);
      put(store, `KEY${at}`);
    }
    expect(store.peek('KEY1')).toBeUndefined();
  });

  test('forgets everything at once, and stores nothing loaded before', () => {
    const store = open();
    put(store, 'A');
    const { ticket } = store.get('B');
    store.sweep({ prefix: '', isSoft: false });
    expect(store.peek('A')).toBeUndefined();
    expect(store.set('B', entryOf('b'), ticket)).toBe(false);
  });

  test('takes what it keeps for stale after messages were missed, but keeps it to stand in', () => {
    const store = open();
    put(store, 'A');
    const { ticket } = store.get('B');
    store.distrust(NOW + 5);
    expect(store.peek('A')).toEqual(entryOf('A', { staleAt: NOW + 5 }));
    expect(store.set('B', entryOf('b'), ticket)).toBe(false);
    put(store, 'A');
    expect(store.peek('A')).toEqual(entryOf('A'));
  });

  test('stays fenced by one writer when the fence of another has run out', () => {
    let now = NOW;
    const store = new MemoryStore({ bounds, fenceLifeMs: 1000, now: () => now });
    put(store, 'A');
    store.raise('A', 'killed', NOW + 500);
    store.raise('A', 'alive', NOW + 1000);
    now = NOW + 700;
    expect(put(store, 'A')).toBe(false);
    expect(store.peek('A')?.staleAt).toBeLessThanOrEqual(now);
    store.lower('A', 'alive');
    expect(store.peek('A')?.staleAt).toBeLessThanOrEqual(now);
    expect(put(store, 'A')).toBe(true);
  });

  test('does not remember for ever the fences of writers that never said how it ended', () => {
    let now = NOW;
    const fences = new Fences();
    const store = new MemoryStore({ bounds, fenceLifeMs: 1000, now: () => now, fences });
    put(store, 'KEY0');
    for (let at = 0; at < 100; at++) void store.fence(`KEY${at}`).unknown();
    now = NOW + 1000;
    for (let at = 0; at < 100; at++) void store.fence(`OTHER${at}`).unchanged();
    expect(fences.size).toBe(0);
    expect(store.peek('KEY0')?.staleAt).toBeLessThanOrEqual(now);
  });

  test('takes what it kept for stale for good when a fence has run out', () => {
    let now = NOW;
    const store = new MemoryStore({ bounds, fenceLifeMs: 1000, now: () => now });
    put(store, 'A');
    store.raise('A', 'killed', NOW + 500);
    now = NOW + 500;
    expect(store.peek('A')?.staleAt).toBe(now);
    now = NOW + 600;
    expect(store.peek('A')?.staleAt).toBe(NOW + 500);
  });
});
