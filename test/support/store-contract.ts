// The contract of the cache store, run for each combination of tiers.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Entry } from '../../src/cache/entry.js';
import type { AuthoritativeAnswer, Store } from '../../src/cache/store.js';
import { toBytes } from '../../src/handle/bytes.js';

export const NOW = Date.parse('2026-11-21T10:00:00Z');

export function entryOf(text: string, more: Partial<Entry> = {}): Entry {
  const times = { requestedAt: NOW, staleAt: NOW + 3_600_000, deleteAt: NOW + 90_000_000 };
  return { kind: 'found', values: toBytes(JSON.stringify([text])), message: '', ...times, ...more };
}

/** Returns an authoritative response with a record that differs from the cached record. */
const answerOf = <Ticket>(entry: Entry, ticket: Ticket): AuthoritativeAnswer<Ticket> => ({
  entry,
  ticket,
  isUnchanged: false,
});

export interface Opened<Ticket> {
  store: Store<Ticket>;
  close: () => Promise<void>;
}

/** Makes keys unique, because several suites may share one Redis. */
let keys = 0;

export function storeContract<Ticket>(open: () => Promise<Opened<Ticket>>): void {
  describe('as a store', () => {
    let opened: Opened<Ticket>;
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

    test('knows nothing of a key it was never given', async () => {
      expect(await read(freshKey())).toBeUndefined();
    });

    test.each(['plain', 'Größe — 漢字 😀', '\u0000\u001f\u2028', 'x'.repeat(100_000)])(
      'gives back what it was given, case %#',
      async (text) => {
        const key = freshKey();
        expect(await put(key, entryOf(text))).toBe(true);
        expect(await read(key)).toEqual(entryOf(text));
      },
    );

    test('keeps not-found answers with their message', async () => {
      const key = freshKey();
      const entry = entryOf('', {
        kind: 'not-found',
        values: toBytes(''),
        message: 'Unable to find service',
      });
      await put(key, entry);
      expect(await read(key)).toEqual(entry);
    });

    test('distinguishes similar keys', async () => {
      const key = freshKey();
      await put(`${key}{a}`, entryOf('braces'));
      await put(`${key}%7Ba%7D`, entryOf('escapes'));
      expect(await read(`${key}{a}`)).toEqual(entryOf('braces'));
      expect(await read(`${key}%7Ba%7D`)).toEqual(entryOf('escapes'));
    });

    test('lets the newer entry stand, also of another kind', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      const gone = entryOf('', { kind: 'not-found', values: toBytes(''), requestedAt: NOW + 1 });
      await put(key, gone);
      expect(await read(key)).toEqual(gone);
    });

    test('keeps an authoritative load over a load from before', async () => {
      const key = freshKey();
      const before = await opened.store.get(key);
      const { ticket } = await opened.store.get(key);
      await opened.store.replace(key, answerOf(entryOf('new', { requestedAt: NOW + 1 }), ticket));
      expect(await opened.store.set(key, entryOf('old'), before.ticket)).toBe(false);
      expect((await read(key))?.values ?? entryOf('new').values).toEqual(entryOf('new').values);
    });

    test('does not store an authoritative load from before an invalidation, or during a write', async () => {
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

    test('has no entry after an invalidation', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      await opened.store.forget(key);
      expect(await read(key)).toBeUndefined();
    });

    test('does not store a load from before an invalidation', async () => {
      const key = freshKey();
      const { ticket } = await opened.store.get(key);
      await opened.store.forget(key);
      expect(await opened.store.set(key, entryOf('from before'), ticket)).toBe(false);
      expect(await read(key)).toBeUndefined();
    });

    test('stores a load from after an invalidation', async () => {
      const key = freshKey();
      await opened.store.forget(key);
      expect(await put(key, entryOf('from after'))).toBe(true);
      expect(await read(key)).toEqual(entryOf('from after'));
    });

    test('stores nothing while a write is in flight', async () => {
      const key = freshKey();
      const before = await opened.store.get(key);
      const fence = await opened.store.fence(key);
      expect(await opened.store.set(key, entryOf('begun before'), before.ticket)).toBe(false);
      expect(await put(key, entryOf('begun meanwhile'))).toBe(false);
      await fence.changed();
      expect(await read(key)).toBeUndefined();
    });

    test('does not store a load that began during a write that changed the record', async () => {
      const key = freshKey();
      const fence = await opened.store.fence(key);
      const { ticket } = await opened.store.get(key);
      await fence.changed();
      expect(await opened.store.set(key, entryOf('begun meanwhile'), ticket)).toBe(false);
      expect(await put(key, entryOf('begun after'))).toBe(true);
    });

    test('keeps its entry fresh while a write is in flight, and drops it when the write changed the record', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      const fence = await opened.store.fence(key);
      expect(await read(key)).toEqual(entryOf('old'));
      await fence.changed();
      expect(await read(key)).toBeUndefined();
    });

    test('keeps its entry fresh after a refused write, and stores a load that began during it', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      const fence = await opened.store.fence(key);
      const { ticket } = await opened.store.get(key);
      await fence.unchanged();
      expect(await read(key)).toEqual(entryOf('old'));
      expect(await opened.store.set(key, entryOf('begun meanwhile'), ticket)).toBe(true);
      expect(await read(key)).toEqual(entryOf('begun meanwhile'));
    });

    test('does not store a load that began before a refused write', async () => {
      const key = freshKey();
      const { ticket } = await opened.store.get(key);
      await (await opened.store.fence(key)).unchanged();
      expect(await opened.store.set(key, entryOf('begun before'), ticket)).toBe(false);
    });

    test('has a stale entry after a write whose outcome is unknown, also after others were refused', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      const [one, other] = [await opened.store.fence(key), await opened.store.fence(key)];
      await one.unknown();
      expect((await read(key))?.staleAt).toBeLessThanOrEqual(NOW);
      await other.unchanged();
      expect(await read(key)).toMatchObject({ values: entryOf('old').values, deleteAt: NOW + 90_000_000 });
      expect((await read(key))?.staleAt).toBeLessThanOrEqual(NOW);
    });

    test('accepts a load unless a write is in flight or has changed the record since', async () => {
      const key = freshKey();
      const before = await opened.store.get(key);
      expect(opened.store.accepts(key, before.ticket)).toBe(true);
      await (await opened.store.fence(key)).changed();
      const after = await opened.store.get(key);
      expect(opened.store.accepts(key, after.ticket)).toBe(true);
    });

    test('stays fenced until the last of several writers is done', async () => {
      const key = freshKey();
      const [one, other] = [await opened.store.fence(key), await opened.store.fence(key)];
      await one.changed();
      expect(await put(key, entryOf('while the other writes'))).toBe(false);
      await other.unchanged();
      expect(await put(key, entryOf('after both'))).toBe(true);
    });

    test('stores nothing for a while after a write of which nobody knows how it ended', async () => {
      const key = freshKey();
      const fence = await opened.store.fence(key);
      await fence.unknown();
      expect(await put(key, entryOf('perhaps from before'))).toBe(false);
    });

    test('keeps a softened entry as stale, and does not store loads from before', async () => {
      const key = freshKey();
      await put(key, entryOf('old'));
      const { ticket } = await opened.store.get(key);
      await opened.store.soften(key);
      expect(await read(key)).toMatchObject({ values: entryOf('old').values, deleteAt: NOW + 90_000_000 });
      expect((await read(key))?.staleAt).toBeLessThanOrEqual(NOW);
      expect(await opened.store.set(key, entryOf('from before'), ticket)).toBe(false);
      expect(await put(key, entryOf('new'))).toBe(true);
      expect(await read(key)).toEqual(entryOf('new'));
    });

    test('softens a key it does not know, and twice', async () => {
      const key = freshKey();
      await opened.store.soften(key);
      expect(await read(key)).toBeUndefined();
      await put(key, entryOf('old'));
      await opened.store.soften(key);
      await opened.store.soften(key);
      expect((await read(key))?.kind).toBe('found');
    });

    test.each([false, true])('bans all keys that begin so (soft: %s)', async (isSoft) => {
      const prefix = `${freshKey()}%{`;
      const [one, other, unrelated] = [`${prefix}1`, `${prefix}2`, freshKey()] as const;
      await put(one, entryOf('one'));
      await put(unrelated, entryOf('stays'));
      const { ticket } = await opened.store.get(other);
      await opened.store.ban({ prefix, isSoft });
      if (isSoft) expect((await read(one))?.staleAt).toBeLessThanOrEqual(NOW);
      else expect(await read(one)).toBeUndefined();
      expect(await read(unrelated)).toEqual(entryOf('stays'));
      expect(await opened.store.set(other, entryOf('from before'), ticket)).toBe(false);
      expect(await put(one, entryOf('new'))).toBe(true);
      expect(await read(one)).toEqual(entryOf('new'));
    });

    test('deletes one key and keeps the next one', async () => {
      const [key, unrelated] = [freshKey(), freshKey()];
      await put(unrelated, entryOf('stays'));
      await opened.store.forget(key);
      expect(await read(unrelated)).toEqual(entryOf('stays'));
    });
  });
}
