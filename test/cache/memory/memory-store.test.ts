import { describe, expect, test, vi } from 'vitest';
import type { MemoryBounds } from '../../../src/cache/memory/lru-index.js';
import { type MemoryOptions, MemoryStore } from '../../../src/cache/memory/memory-store.js';
import { groupOf } from '../../../src/cache/coherence/groups.js';
import { toBytes } from '../../../src/handle/bytes.js';
import { NOW, entryOf } from '../../support/store-contract.js';

const bounds = { maxBytes: 1_000_000, found: { maxEntries: 100 }, notFound: { maxEntries: 100 } };
function open(
  more: Partial<MemoryBounds> = {},
  onEvict: MemoryOptions['onEvict'] = () => undefined,
): MemoryStore {
  return new MemoryStore({ bounds: { ...bounds, ...more }, now: () => NOW, onEvict });
}

const notFound = entryOf('', { kind: 'not-found', values: toBytes('') });

function put(store: MemoryStore, key: string, entry = entryOf(key)): boolean {
  return store.set(key, entry, store.get(key).ticket);
}

describe('memory store', () => {
  test('stores at most the configured number of records, and evicts the least recently used', () => {
    const evicted: string[] = [];
    const store = open({ found: { maxEntries: 2 } }, (which) => evicted.push(which));
    put(store, 'A');
    put(store, 'B');
    store.peek('A');
    put(store, 'C');
    expect(['A', 'B', 'C'].map((key) => store.peek(key) !== undefined)).toEqual([true, false, true]);
    expect(evicted).toEqual(['newcomers']);
    store.peek('C');
    put(store, 'D');
    expect(['A', 'C', 'D'].map((key) => store.peek(key) !== undefined)).toEqual([false, true, true]);
    expect(evicted).toEqual(['newcomers', 'found']);
  });

  test('keeps records that are read again while a crawler reads each name once', () => {
    const evicted: string[] = [];
    const store = open({ found: { maxEntries: 100 } }, (which) => evicted.push(which));
    const popular = Array.from({ length: 80 }, (_, at) => `POPULAR${at}`);
    for (const key of popular) put(store, key);
    for (const key of popular) store.peek(key);
    for (let at = 0; at < 1000; at++) put(store, `CRAWLED${at}`);
    expect(popular.every((key) => store.peek(key) !== undefined)).toBe(true);
    expect(new Set(evicted)).toEqual(new Set(['newcomers']));
    expect(store.usage().map(({ store: name, entries }) => [name, entries])).toEqual([
      ['found', 80],
      ['newcomers', 20],
      ['notFound', 0],
    ]);
  });

  test('stores nothing else while records without a server need all of the room', () => {
    const store = open({ found: { maxEntries: 2 } });
    for (const key of ['A', 'B']) expect(store.restore(key, entryOf(key), store.moment())).toBe('restored');
    expect(store.restore('C', entryOf('C'), store.moment())).toBe('full');
    for (let times = 0; times < 2; times++) expect(put(store, 'D')).toBe(false);
    store.forget('A');
    for (const key of ['D', 'E']) {
      expect(put(store, key)).toBe(true);
      expect(store.peek(key)).toBeDefined();
    }
    expect(['A', 'B', 'D', 'E'].filter((key) => store.peek(key) !== undefined)).toEqual(['B', 'E']);
    expect(store.usage().map(({ entries }) => entries)).toEqual([2, 0, 0]);
  });

  test('counts the length of records without a server towards the memory of all records', () => {
    const store = open({ maxBytes: 8000 });
    const long = (bytes: number) => entryOf('', { values: toBytes('x'.repeat(bytes)) });
    const bytesOf = (): number => store.usage()[0]?.bytes ?? 0;
    store.restore('A', long(5000), store.moment());
    const least = bytesOf();
    expect(least).toBeGreaterThan(5000);
    expect(put(store, 'B', long(500))).toBe(true);
    expect(store.peek('B')).toBeDefined();
    expect(bytesOf()).toBeGreaterThan(least);
    // It is no newcomer any more, and has become too long for what the other record leaves.
    expect(put(store, 'B', long(3000))).toBe(false);
    expect(['A', 'B'].map((key) => store.peek(key) !== undefined)).toEqual([true, false]);
    expect(bytesOf()).toBe(least);
  });

  test('restores an absence without a server among the other absences, which have their own bound', () => {
    const store = open({ notFound: { maxEntries: 2 } });
    for (const key of ['A', 'B']) expect(store.restore(key, notFound, store.moment())).toBe('restored');
    expect(store.restore('C', notFound, store.moment())).toBe('full');
    expect(store.usage().map(({ entries }) => entries)).toEqual([0, 0, 2]);
    put(store, 'C', notFound);
    expect(['A', 'B', 'C'].map((key) => store.peek(key) !== undefined)).toEqual([false, true, true]);
  });

  test('keeps records without a server and without public values when they are made fresh again', () => {
    const store = open({ notFound: { maxEntries: 1 } });
    const empty = entryOf('', { kind: 'empty', values: toBytes('') });
    for (const key of ['A', 'B']) expect(store.restore(key, empty, store.moment())).toBe('restored');
    store.distrust();
    for (const key of ['A', 'B']) expect(put(store, key, empty)).toBe(true);
    for (const key of ['C', 'D']) put(store, key, notFound);
    const kept = ['A', 'B', 'C', 'D'].filter((key) => store.peek(key) !== undefined);
    expect(kept).toEqual(['A', 'B', 'D']);
  });

  test('restores records without a server after a flood of invalidations of other keys, but none that was purged', () => {
    const store = open();
    const ticket = store.moment();
    for (let at = 0; at <= 100_000; at++) store.forget(`${at}`);
    store.forget('B');
    const stale = { ...entryOf('C'), staleAt: 0 };
    expect(store.restore('A', entryOf('A'), ticket)).toBe('restored');
    expect(store.restore('B', entryOf('B'), ticket)).toBe('kept');
    expect(store.restore('C', stale, ticket)).toBe('kept');
  });

  test('lets newcomers displace a tenth of the records that were read again', () => {
    const store = open({ found: { maxEntries: 100 } });
    const popular = Array.from({ length: 100 }, (_, at) => `POPULAR${at}`);
    for (const key of popular) {
      put(store, key);
      store.peek(key);
    }
    for (let at = 0; at < 1000; at++) put(store, `CRAWLED${at}`);
    expect(store.usage().map(({ entries }) => entries)).toEqual([90, 10, 0]);
  });

  test('evicts a newcomer rather than the record that was just stored', () => {
    const store = open({ maxBytes: 8000 });
    put(store, 'A', entryOf('x'.repeat(1000)));
    store.peek('A');
    put(store, 'B', entryOf('x'.repeat(1000)));
    expect(put(store, 'A', entryOf('x'.repeat(6000)))).toBe(true);
    expect(['A', 'B'].map((key) => store.peek(key) !== undefined)).toEqual([true, false]);
  });

  test('puts restored records among those that were read again', () => {
    const store = open();
    expect(store.restore('A', entryOf('A'), store.moment())).toBe('restored');
    expect(store.usage().map(({ entries }) => entries)).toEqual([1, 0, 0]);
  });

  test('stores at most the configured number of bytes', () => {
    const store = open({ maxBytes: 10_000 });
    for (let at = 0; at < 50; at++) put(store, `KEY${at}`, entryOf('x'.repeat(500)));
    const [, newcomers] = store.usage();
    expect(newcomers?.bytes).toBeLessThanOrEqual(10_000);
    expect(newcomers?.entries).toBeGreaterThan(5);
  });

  test('rejects an entry larger than the maximum size', () => {
    const store = open({ maxBytes: 10_000 });
    expect(put(store, 'BIG', entryOf('x'.repeat(20_000)))).toBe(false);
  });

  test('evicts no record during a flood of unknown names (negative cache)', () => {
    const store = open({ maxBytes: 100_000, found: { maxEntries: 10 }, notFound: { maxEntries: 10 } });
    put(store, 'RECORD');
    for (let at = 0; at < 10_000; at++) put(store, `UNKNOWN${at}`, notFound);
    expect(store.peek('RECORD')).toBeDefined();
    expect(store.usage().map(({ entries }) => entries)).toEqual([1, 0, 10]);
  });

  test('counts the hits of an entry since it was stored', () => {
    const store = open();
    put(store, 'A');
    store.peek('A');
    store.peek('A');
    expect(store.hits('A')).toBe(2);
    put(store, 'A');
    expect(store.hits('A')).toBe(0);
  });

  test('deletes all banned entries, and rejects earlier loads', () => {
    const store = open();
    put(store, 'A');
    const { ticket } = store.get('B');
    store.ban({ prefix: '', isSoft: false });
    expect(store.peek('A')).toBeUndefined();
    expect(store.set('B', entryOf('b'), ticket)).toBe(false);
  });

  test('marks entries stale after missed messages, and retains them for stale-if-error', () => {
    const store = open();
    put(store, 'A');
    const { ticket } = store.get('B');
    store.distrust();
    expect(store.peek('A')).toEqual(entryOf('A', { staleAt: 0 }));
    expect(store.set('B', entryOf('b'), ticket)).toBe(false);
    put(store, 'A');
    expect(store.peek('A')).toEqual(entryOf('A'));
  });

  test('marks stale only the group whose messages were missed', () => {
    const store = open();
    put(store, 'A');
    put(store, 'B');
    const tickets = ['A', 'B'].map((key) => store.get(key).ticket);
    store.distrust(groupOf('A'));
    expect([store.peek('A')?.staleAt, store.peek('B')?.staleAt]).toEqual([0, entryOf('B').staleAt]);
    const stored = ['A', 'B'].map((key, at) => store.set(key, entryOf('late'), tickets[at] ?? 0));
    expect(stored).toEqual([false, true]);
    put(store, 'A');
    expect(store.peek('A')).toEqual(entryOf('A'));
  });

  test('prefers an explicit replacement to older loads', () => {
    const store = open();
    const before = store.get('A').ticket;
    expect(store.replace('A', entryOf('new'), store.get('A').ticket)).toBe(true);
    expect(store.set('A', entryOf('old'), before)).toBe(false);
    expect(store.peek('A')).toEqual(entryOf('new'));
  });

  test('stores nothing for a key while a fence on it is raised', () => {
    const store = open();
    const before = store.get('A').ticket;
    store.applyChange({ kind: 'raise', key: 'A', fence: 'writer', lifeMs: 1000 });
    expect(put(store, 'A')).toBe(false);
    const during = store.get('A').ticket;
    expect(store.accepts('A', during)).toBe(false);
    store.applyChange({ kind: 'unchanged', key: 'A', fence: 'writer' });
    expect([before, during].map((ticket) => store.accepts('A', ticket))).toEqual([false, true]);
  });

  test('keeps the fence of one writer when that of a different writer has expired', () => {
    let now = NOW;
    const store = new MemoryStore({ bounds, now: () => now });
    put(store, 'A');
    store.applyChange({ kind: 'raise', key: 'A', fence: 'killed', lifeMs: 500 });
    store.applyChange({ kind: 'raise', key: 'A', fence: 'alive', lifeMs: 1000 });
    now = NOW + 700;
    expect(put(store, 'A')).toBe(false);
    expect(store.peek('A')?.staleAt).toBeLessThanOrEqual(now);
    store.applyChange({ kind: 'unchanged', key: 'A', fence: 'alive' });
    expect(store.peek('A')?.staleAt).toBeLessThanOrEqual(now);
    expect(put(store, 'A')).toBe(true);
  });

  test('removes expired fences of writers that reported no outcome', () => {
    let now = NOW;
    const store = new MemoryStore({ bounds, now: () => now });
    put(store, 'KEY0');
    for (let at = 0; at < 100; at++)
      store.applyChange({ kind: 'raise', key: `KEY${at}`, fence: 'killed', lifeMs: 1000 });
    now = NOW + 1000;
    for (let at = 0; at < 100; at++) {
      store.applyChange({ kind: 'raise', key: `OTHER${at}`, fence: 'alive', lifeMs: 1000 });
      store.applyChange({ kind: 'unchanged', key: `OTHER${at}`, fence: 'alive' });
    }
    for (let at = 1; at < 100; at++)
      expect(store.restore(`KEY${at}`, entryOf('A'), store.moment())).toBe('restored');
    expect(store.peek('KEY0')?.staleAt).toBeLessThanOrEqual(now);
  });

  test('leaves an entry stale after its fence has expired, even when the clock is set back', () => {
    let now = NOW;
    const store = new MemoryStore({ bounds, now: () => now });
    put(store, 'A');
    store.applyChange({ kind: 'raise', key: 'A', fence: 'killed', lifeMs: 500 });
    now = NOW + 500;
    expect(store.peek('A')?.staleAt).toBe(0);
    now = NOW - 600;
    expect(store.peek('A')?.staleAt).toBe(0);
  });
});

describe('record with its text cached as a string', () => {
  const large = (letter: string): ReturnType<typeof entryOf> =>
    entryOf('A', { values: toBytes(`["${letter.repeat(100_000)}"]`) });

  test('is read without copying the text', () => {
    const store = new MemoryStore({ bounds, now: () => NOW });
    put(store, 'A', large('a'));
    const reads = vi.spyOn(Buffer.prototype, 'toString');
    const [first, next] = [store.peek('A'), store.peek('A')];
    const copied = reads.mock.calls.length;
    reads.mockRestore();
    expect([first?.values, next?.values]).toEqual([large('a').values, large('a').values]);
    expect(copied).toBe(1);
  });

  test.each<[string, (store: MemoryStore) => void]>([
    ['a newer record of its handle', () => undefined],
    [
      'a record that reuses its row after an invalidation',
      (store) => {
        store.forget('A');
      },
    ],
    [
      'a record stored after a purge of everything',
      (store) => {
        store.ban({ prefix: '', isSoft: false });
      },
    ],
  ])('is not returned in place of %s', (_what, change) => {
    const store = new MemoryStore({ bounds, now: () => NOW });
    put(store, 'A', large('a'));
    store.peek('A');
    change(store);
    put(store, 'A', large('b'));
    expect(store.peek('A')?.values).toBe(large('b').values);
  });
});
