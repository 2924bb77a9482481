// Pinned entries: repeated reads of one key skip the lookup.
import { describe, expect, test } from 'vitest';
import { groupOf } from '../../../src/cache/coherence/groups.js';
import type { MemoryBounds } from '../../../src/cache/memory/lru-index.js';
import { MemoryStore } from '../../../src/cache/memory/memory-store.js';
import type { EntryPin } from '../../../src/cache/store.js';
import { toBytes } from '../../../src/handle/bytes.js';
import { NOW, entryOf } from '../../support/store-contract.js';

const bounds = { maxBytes: 1_000_000, found: { maxEntries: 100 }, notFound: { maxEntries: 100 } };
function open(more: Partial<MemoryBounds> = {}): MemoryStore {
  return new MemoryStore({ bounds: { ...bounds, ...more }, now: () => NOW });
}

const notFound = entryOf('', { kind: 'not-found', values: toBytes('') });

function put(store: MemoryStore, key: string, entry = entryOf(key)): boolean {
  return store.set(key, entry, store.get(key).ticket);
}

function heldIn(store: MemoryStore, key: string): EntryPin {
  const held = store.pin(key, entryOf(key));
  if (held === undefined) throw new Error('it is not kept');
  return held;
}

describe('pinned entry in the memory store', () => {
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
        store.applyChange({ kind: 'soften', key: 'A' });
      },
    ],
    [
      'invalidated by a write',
      (store) => {
        store.applyChange({ kind: 'raise', key: 'A', fence: 'writer', lifeMs: 1000 });
        store.applyChange({ kind: 'unchanged', key: 'A', fence: 'writer' });
        store.forget('A');
      },
    ],
    [
      'left stale by a write whose outcome is unknown',
      (store) => {
        store.applyChange({ kind: 'raise', key: 'A', fence: 'writer', lifeMs: 1000 });
        store.applyChange({ kind: 'soften', key: 'A' });
      },
    ],
    ['replaced', (store) => put(store, 'A', entryOf('new'))],
    ['found to be missing', (store) => put(store, 'A', notFound)],
    [
      'purged with all others',
      (store) => {
        store.ban({ prefix: '', isSoft: false });
      },
    ],
    [
      'purged by its prefix',
      (store) => {
        store.ban({ prefix: 'A', isSoft: true });
      },
    ],
    [
      'distrusted',
      (store) => {
        store.distrust();
      },
    ],
    [
      'distrusted with its group',
      (store) => {
        store.distrust(groupOf('A'));
      },
    ],
    ['evicted', (store) => Array.from({ length: 100 }, (_, at) => put(store, `KEY${at}`))],
  ])('is not current after it was %s', (_how, change) => {
    const store = open();
    put(store, 'A');
    const held = heldIn(store, 'A');
    expect(store.touchIfCurrent('A', held)).toBe(true);
    change(store);
    expect(store.touchIfCurrent('A', held)).toBe(false);
  });

  test('must be the stored entry', () => {
    const store = open();
    expect(store.pin('A', entryOf('A'))).toBeUndefined();
    put(store, 'A');
    expect(store.pin('A', entryOf('B'))).toBeUndefined();
    expect(store.pin('A', entryOf('A', { requestedAt: NOW - 1 }))).toBeUndefined();
    expect(store.pin('A', entryOf('A'))).toBeDefined();
  });

  test('is distinguished from a later entry in the same slot', () => {
    const store = open();
    put(store, 'A');
    const held = heldIn(store, 'A');
    store.forget('A');
    put(store, 'B');
    put(store, 'A');
    expect(store.touchIfCurrent('A', held)).toBe(false);
    store.ban({ prefix: '', isSoft: false });
    put(store, 'A');
    expect(store.touchIfCurrent('A', held)).toBe(false);
  });

  test('stays current during a write and after its rejection', () => {
    const store = open();
    put(store, 'A');
    const held = heldIn(store, 'A');
    store.applyChange({ kind: 'raise', key: 'A', fence: 'writer', lifeMs: 1000 });
    expect(store.touchIfCurrent('A', held)).toBe(true);
    store.applyChange({ kind: 'unchanged', key: 'A', fence: 'writer' });
    expect(store.touchIfCurrent('A', held)).toBe(true);
  });

  test('expires with the fence of a dead writer', () => {
    let now = NOW;
    const store = new MemoryStore({ bounds, now: () => now });
    put(store, 'A');
    const held = heldIn(store, 'A');
    store.applyChange({ kind: 'raise', key: 'A', fence: 'killed', lifeMs: 1000 });
    now = NOW + 999;
    expect(store.touchIfCurrent('A', held)).toBe(true);
    now = NOW + 1000;
    expect(store.touchIfCurrent('A', held)).toBe(false);
  });

  test('remains in the LRU when touched, while other entries are evicted', () => {
    const store = open({ found: { maxEntries: 100 } });
    for (let at = 0; at < 100; at++) put(store, `KEY${at}`);
    const held = heldIn(store, 'KEY0');
    for (let at = 100; at < 1000; at++) {
      expect(store.touchIfCurrent('KEY0', held)).toBe(true);
      put(store, `KEY${at}`);
    }
    expect(store.peek('KEY1')).toBeUndefined();
  });
});
