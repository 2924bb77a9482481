// Invalidation messages from other instances, applied to the cache of this process.
import { type StoreEvents, createStoreEvents } from '../../src/cache/store.js';
import { describe, expect, test } from 'vitest';
import { createMessageApplier } from '../../src/cache/apply-message.js';
import { groupOf } from '../../src/cache/coherence/groups.js';
import type { Message } from '../../src/cache/coherence/message.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { gate } from '../support/gate.js';
import { isSettled } from '../support/manual-clock.js';
import { NOW, entryOf } from '../support/store-contract.js';

const bounds = { maxBytes: 1_000_000, found: { maxEntries: 100 }, notFound: { maxEntries: 100 } };

function open(deleted: StoreEvents['deleted'] = []) {
  const clock = { now: NOW };
  const now = (): number => clock.now;
  const memory = new MemoryStore({ bounds, now });
  const gone = { keys: [] as string[], prefixes: [] as string[] };
  const purged: string[] = [];
  const applied = createMessageApplier(memory, {
    ...createStoreEvents(),
    deleted,
    invalidated: [(key) => gone.keys.push(key)],
    banned: [(prefix) => gone.prefixes.push(prefix)],
    purged: [(prefix) => purged.push(prefix)],
  });
  const put = (key: string): boolean => memory.set(key, entryOf(key), memory.get(key).ticket);
  return { ...applied, memory, put, gone, purged, clock };
}

const ban = (number: number, prefix = 'A', isSoft = false): Message & { kind: 'ban' } => ({
  kind: 'ban',
  prefix,
  isSoft,
  number,
});

describe('invalidation message applier', () => {
  test.each<[Message, 'gone' | 'stale' | 'fresh']>([
    [{ kind: 'raise', key: 'A', fence: 'm/0.1', lifeMs: 1000 }, 'fresh'],
    [{ kind: 'unchanged', key: 'A', fence: 'm/0.1' }, 'fresh'],
    [{ kind: 'changed', key: 'A', fence: 'm/0.1' }, 'gone'],
    [{ kind: 'unknown', key: 'A', fence: 'm/0.1', lifeMs: 1000 }, 'stale'],
    [{ kind: 'forget', key: 'A' }, 'gone'],
    [{ kind: 'soften', key: 'A' }, 'stale'],
    [ban(7), 'gone'],
    [ban(7, '', true), 'stale'],
    [ban(0), 'gone'],
    [{ kind: 'distrust' }, 'stale'],
    [{ kind: 'distrust', group: groupOf('A') }, 'stale'],
    [{ kind: 'distrust', group: groupOf('A') + 1 }, 'fresh'],
  ])('applies %j, which leaves the entry %s', (message, left) => {
    const { apply, memory, put } = open();
    put('A');
    void apply(message);
    const expected = { gone: undefined, stale: entryOf('A', { staleAt: 0 }), fresh: entryOf('A') };
    expect(memory.peek('A')).toEqual(expected[left]);
  });

  test('detaches loads of invalidated keys, so later readers do not join them', () => {
    const { apply, gone } = open();
    void apply({ kind: 'raise', key: 'RAISED', fence: 'm/0.1', lifeMs: 1000 });
    void apply({ kind: 'unchanged', key: 'RAISED', fence: 'm/0.1' });
    void apply({ kind: 'forget', key: 'A' });
    void apply(ban(7, 'B'));
    void apply({ kind: 'distrust', group: 3 });
    expect(gone).toEqual({ keys: ['A'], prefixes: ['B', ''] });
  });

  test('fences a key whose write of unknown outcome started before this process, until the fence expires', () => {
    const { apply, put, clock } = open();
    void apply({ kind: 'unknown', key: 'A', fence: 'm/0.1', lifeMs: 1000 });
    expect(put('A')).toBe(false);
    clock.now += 1000;
    expect(put('A')).toBe(true);
  });

  test('has no ban list before the list is read from Redis', () => {
    const { apply, bans } = open();
    void apply(ban(8));
    expect(bans()).toBeUndefined();
    void apply({ kind: 'bans', run: 'one', seq: 9, floor: 0, bans: [] });
    expect(bans()).toBeDefined();
  });

  test('adds a ban that arrives while an older ban list is being read', () => {
    const { apply, bans } = open();
    void apply(ban(8, 'A'));
    void apply({
      kind: 'bans',
      run: 'one',
      seq: 7,
      floor: 2,
      bans: [{ number: 5, prefix: 'B', isSoft: false }],
    });
    expect(bans()?.apply('A', entryOf('A'), 7)).toBeUndefined();
    expect(bans()?.apply('B', entryOf('B'), 4)).toBeUndefined();
    expect(bans()?.latest).toBe(8);
  });

  test.each([false, true])('does not apply a known ban to entries loaded after it (soft: %s)', (isSoft) => {
    const { apply, memory, put } = open();
    const known = { number: 8, prefix: 'A', isSoft };
    void apply({ kind: 'bans', run: 'one', seq: 9, floor: 0, bans: [known] });
    put('A');
    void apply(ban(8, 'A', isSoft));
    void apply({ kind: 'bans', run: 'one', seq: 9, floor: 0, bans: [known] });
    expect(memory.peek('A')).toEqual(entryOf('A'));
  });

  test('a ban that the list has already contained is acknowledged once it is noted too', async () => {
    const noted = gate();
    const { apply } = open([() => noted.opened]);
    const known = { number: 8, prefix: 'A', isSoft: false };
    void apply({ kind: 'bans', run: 'one', seq: 8, floor: 0, bans: [known] });
    const applied = Promise.resolve(apply(ban(8)));
    expect(await isSettled(applied)).toBe(false);
    noted.open();
    await applied;
  });

  test('applies missed bans when the ban list is read again', () => {
    const { apply, memory, put } = open();
    void apply({ kind: 'bans', run: 'one', seq: 9, floor: 0, bans: [] });
    put('A');
    void apply({
      kind: 'bans',
      run: 'one',
      seq: 9,
      floor: 0,
      bans: [{ number: 8, prefix: 'A', isSoft: false }],
    });
    expect(memory.peek('A')).toBeUndefined();
  });

  test('reports purges that this process has missed, but not those from before its start', () => {
    const { apply, purged } = open();
    const listed = ['A', 'B'].map((prefix, at) => ({ number: 8 + at, prefix, isSoft: false }));
    void apply({ kind: 'bans', run: 'one', seq: 8, floor: 0, bans: listed.slice(0, 1) });
    void apply({ kind: 'bans', run: 'one', seq: 9, floor: 0, bans: listed });
    expect(purged).toEqual(['B']);
  });

  test('marks all entries stale when missed bans are no longer listed', () => {
    const { apply, memory, put } = open();
    void apply({ kind: 'bans', run: 'one', seq: 9, floor: 3, bans: [] });
    put('A');
    void apply({ kind: 'bans', run: 'one', seq: 9, floor: 3, bans: [] });
    expect(memory.peek('A')).toEqual(entryOf('A'));
    void apply({ kind: 'bans', run: 'one', seq: 9, floor: 9, bans: [] });
    expect(memory.peek('A')).toEqual(entryOf('A', { staleAt: 0 }));
  });

  test('applies a ban numbered below the latest one, because its number may come from a different server run', () => {
    const { apply, memory, put } = open();
    void apply(ban(9));
    put('A');
    void apply(ban(7));
    expect(memory.peek('A')).toBeUndefined();
  });

  test('adopts the bans of a new server run, and ignores the numbers of the previous run', () => {
    const { apply, bans } = open();
    void apply({
      kind: 'bans',
      run: 'one',
      seq: 9,
      floor: 3,
      bans: [{ number: 9, prefix: '', isSoft: false }],
    });
    void apply({
      kind: 'bans',
      run: 'other',
      seq: 6,
      floor: 5,
      bans: [{ number: 6, prefix: 'A', isSoft: false }],
    });
    expect(bans()?.run).toBe('other');
    expect([bans()?.latest, bans()?.isBannedSince('A', 5), bans()?.isBannedSince('A', 6)]).toEqual([
      6,
      true,
      false,
    ]);
  });

  test('ignores in a new server run the bans that arrived before the list of the previous run', () => {
    const { apply, bans } = open();
    void apply(ban(7));
    void apply({ kind: 'bans', run: 'one', seq: 7, floor: 3, bans: [] });
    void apply({ kind: 'bans', run: 'other', seq: 6, floor: 5, bans: [] });
    expect(bans()?.latest).toBe(5);
  });
});
