// The contract of the cache store, run for each combination of tiers.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Entry } from '../../src/cache/entry.js';
import type { AuthoritativeAnswer, Ticket } from '../../src/cache/store.js';
import type { TieredStore } from '../../src/cache/tiered-store.js';
import { textValue } from '../../src/dev-server/seed.js';
import { toBytes } from '../../src/handle/bytes.js';

export const NOW = Date.parse('2026-11-21T10:00:00Z');

export function entryOf(text: string, more: Partial<Entry> = {}): Entry {
  const times = { requestedAt: NOW, staleAt: NOW + 3_600_000, deleteAt: NOW + 90_000_000 };
  const values = toBytes(JSON.stringify([textValue(1, 'DESC', text)]));
  return { kind: 'found', values, message: '', ...times, ...more };
}

/** Returns an authoritative response with a record that differs from the cached record. */
const answerOf = (entry: Entry, ticket: Ticket): AuthoritativeAnswer => ({
  entry,
  ticket,
  isUnchanged: false,
});

/** What the resolver uses of a store, for stores that break a rule. */
export type Store = { [Name in keyof TieredStore]: TieredStore[Name] };

/** Matches an entry that Redis may have made a little older. */
export const readBack = (entry: Entry): unknown => ({
  ...entry,
  requestedAt: expect.closeTo(entry.requestedAt, -6) as number,
  staleAt: expect.closeTo(entry.staleAt, -6) as number,
  deleteAt: expect.closeTo(entry.deleteAt, -6) as number,
});

export interface Opened {
  store: Store;
  close: () => Promise<void>;
}

/** Makes keys unique, because several suites may share one Redis. */
let keys = 0;

export function storeContract(open: () => Promise<Opened>): void {
  describe('store', () => {
    let opened: Opened;
    const freshKey = (): string => `21.T1/KEY-${++keys}`;
    const put = async (key: string, entry: Entry): Promise<boolean | undefined> => {
      const { ticket } = await opened.store.get(key);
      return opened.store.set(key, entry, ticket);
    };
    const read = async (key: string): Promise<Entry | undefined> => (await opened.store.get(key)).entry;

    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());

    test('returns nothing for an unknown key', async () => {
      expect(await read(freshKey())).toBeUndefined();
    });

    test.each(['plain', 'Größe — 漢字 😀', '\u0000\u001f\u2028', 'x'.repeat(100_000)])(
      'returns the stored entry (case %#)',
      async (text) => {
        const key = freshKey();
        expect(await put(key, entryOf(text))).toBe(true);
        expect(await read(key)).toEqual(readBack(entryOf(text)));
      },
    );

    test('preserves the message of a not-found entry', async () => {
      const key = freshKey();
      const entry = entryOf('', {
        kind: 'not-found',
        values: toBytes(''),
        message: 'Unable to find service',
      });
      await put(key, entry);
      expect(await read(key)).toEqual(readBack(entry));
    });

    test('distinguishes similar keys', async () => {
      const key = freshKey();
      await put(`${key}{a}`, entryOf('braces'));
      await put(`${key}%7Ba%7D`, entryOf('escapes'));
      expect(await read(`${key}{a}`)).toEqual(readBack(entryOf('braces')));
      expect(await read(`${key}%7Ba%7D`)).toEqual(readBack(entryOf('escapes')));
    });

    test('replaces an entry with a newer one of a different kind', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      const gone = entryOf('', { kind: 'not-found', values: toBytes(''), requestedAt: NOW + 1 });
      await put(key, gone);
      expect(await read(key)).toEqual(readBack(gone));
    });

    test('retains the entry of an authoritative load, and rejects a load that started earlier', async () => {
      const key = freshKey();
      const before = await opened.store.get(key);
      const { ticket } = await opened.store.get(key);
      await opened.store.replace(key, answerOf(entryOf('new', { requestedAt: NOW + 1 }), ticket));
      expect(await opened.store.set(key, entryOf('old'), before.ticket)).toBe(false);
      expect((await read(key))?.values ?? entryOf('new').values).toEqual(entryOf('new').values);
    });

    test('rejects an authoritative load that started before an invalidation or during a write', async () => {
      const key = freshKey();
      const { ticket } = await opened.store.get(key);
      await opened.store.forget(key);
      await opened.store.replace(key, answerOf(entryOf('from before'), ticket));
      expect(await read(key)).toBeUndefined();
      const fence = await opened.store.fence(key);
      const during = await opened.store.get(key);
      await opened.store.replace(key, answerOf(entryOf('meanwhile'), during.ticket));
      expect(await read(key)).toBeUndefined();
      await fence.changed();
      expect(await read(key)).toBeUndefined();
    });

    test('returns nothing after an invalidation', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      await opened.store.forget(key);
      expect(await read(key)).toBeUndefined();
    });

    test('rejects a load that started before an invalidation', async () => {
      const key = freshKey();
      const { ticket } = await opened.store.get(key);
      await opened.store.forget(key);
      expect(await opened.store.set(key, entryOf('from before'), ticket)).toBe(false);
      expect(await read(key)).toBeUndefined();
    });

    test('accepts a load that started after an invalidation', async () => {
      const key = freshKey();
      await opened.store.forget(key);
      expect(await put(key, entryOf('from after'))).toBe(true);
      expect(await read(key)).toEqual(readBack(entryOf('from after')));
    });

    test('rejects loads while a write is in flight', async () => {
      const key = freshKey();
      const before = await opened.store.get(key);
      const fence = await opened.store.fence(key);
      expect(await opened.store.set(key, entryOf('begun before'), before.ticket)).toBe(false);
      expect(await put(key, entryOf('begun meanwhile'))).toBe(false);
      await fence.changed();
      expect(await read(key)).toBeUndefined();
    });

    test('rejects a load that started during a successful write', async () => {
      const key = freshKey();
      const fence = await opened.store.fence(key);
      const { ticket } = await opened.store.get(key);
      await fence.changed();
      expect(await opened.store.set(key, entryOf('begun meanwhile'), ticket)).toBe(false);
      expect(await put(key, entryOf('begun after'))).toBe(true);
    });

    test('returns a fresh entry during a write, and invalidates it when the write succeeds', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      const fence = await opened.store.fence(key);
      expect(await read(key)).toEqual(readBack(entryOf('old')));
      await fence.changed();
      expect(await read(key)).toBeUndefined();
    });

    test('retains a fresh entry after a refused write, and accepts a load that started during the write', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      const fence = await opened.store.fence(key);
      const { ticket } = await opened.store.get(key);
      await fence.unchanged();
      expect(await read(key)).toEqual(readBack(entryOf('old')));
      expect(await opened.store.set(key, entryOf('begun meanwhile'), ticket)).toBe(true);
      expect(await read(key)).toEqual(readBack(entryOf('begun meanwhile')));
    });

    test('rejects a load that started before a refused write', async () => {
      const key = freshKey();
      const { ticket } = await opened.store.get(key);
      await (await opened.store.fence(key)).unchanged();
      expect(await opened.store.set(key, entryOf('begun before'), ticket)).toBe(false);
    });

    test('retains an entry as stale after a write of unknown outcome, even if a concurrent write is refused later', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      const [one, other] = [await opened.store.fence(key), await opened.store.fence(key)];
      await one.unknown();
      expect((await read(key))?.staleAt).toBeLessThanOrEqual(NOW);
      await other.unchanged();
      expect(await read(key)).toMatchObject({
        values: entryOf('old').values,
        deleteAt: expect.closeTo(NOW + 90_000_000, -6) as number,
      });
      expect((await read(key))?.staleAt).toBeLessThanOrEqual(NOW);
    });

    test('accepts loads before and after a write', async () => {
      const key = freshKey();
      const before = await opened.store.get(key);
      expect(opened.store.accepts(key, before.ticket)).toBe(true);
      await (await opened.store.fence(key)).changed();
      const after = await opened.store.get(key);
      expect(opened.store.accepts(key, after.ticket)).toBe(true);
    });

    test('rejects loads until the last concurrent write has settled', async () => {
      const key = freshKey();
      const [one, other] = [await opened.store.fence(key), await opened.store.fence(key)];
      await one.changed();
      expect(await put(key, entryOf('while the other writes'))).toBe(false);
      await other.unchanged();
      expect(await put(key, entryOf('after both'))).toBe(true);
    });

    test('rejects loads after a write of unknown outcome', async () => {
      const key = freshKey();
      const fence = await opened.store.fence(key);
      await fence.unknown();
      expect(await put(key, entryOf('perhaps from before'))).toBe(false);
    });

    test('retains an entry as stale after a soft invalidation, and rejects earlier loads', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      const { ticket } = await opened.store.get(key);
      await opened.store.soften(key);
      expect(await read(key)).toMatchObject({
        values: entryOf('old').values,
        deleteAt: expect.closeTo(NOW + 90_000_000, -6) as number,
      });
      expect((await read(key))?.staleAt).toBeLessThanOrEqual(NOW);
      expect(await opened.store.set(key, entryOf('from before'), ticket)).toBe(false);
      expect(await put(key, entryOf('new'))).toBe(true);
      expect(await read(key)).toEqual(readBack(entryOf('new')));
    });

    test('accepts a soft invalidation of an unknown key, and a repeated soft invalidation', async () => {
      const key = freshKey();
      await opened.store.soften(key);
      expect(await read(key)).toBeUndefined();
      await put(key, entryOf('old'));
      await opened.store.soften(key);
      await opened.store.soften(key);
      expect((await read(key))?.kind).toBe('found');
    });

    test.each([
      ['hard', false],
      ['soft', true],
    ])('bans all keys with the prefix (%s)', async (_kind, isSoft) => {
      const prefix = `${freshKey()}%{`;
      const [one, other, unrelated] = [`${prefix}1`, `${prefix}2`, freshKey()] as const;
      await put(one, entryOf('one'));
      await put(unrelated, entryOf('stays'));
      const { ticket } = await opened.store.get(other);
      await opened.store.ban({ prefix, isSoft });
      if (isSoft) expect((await read(one))?.staleAt).toBeLessThanOrEqual(NOW);
      else expect(await read(one)).toBeUndefined();
      expect(await read(unrelated)).toEqual(readBack(entryOf('stays')));
      expect(await opened.store.set(other, entryOf('from before'), ticket)).toBe(false);
      expect(await put(one, entryOf('new'))).toBe(true);
      expect(await read(one)).toEqual(readBack(entryOf('new')));
    });

    test('invalidates one key without affecting others', async () => {
      const [key, unrelated] = [freshKey(), freshKey()];
      await put(unrelated, entryOf('stays'));
      await opened.store.forget(key);
      expect(await read(unrelated)).toEqual(readBack(entryOf('stays')));
    });
  });
}
