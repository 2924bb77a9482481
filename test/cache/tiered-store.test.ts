// Memory in front of Redis: an old entry read from Redis during a publication does not remain in memory.
import { type RedisTicket, createStoreEvents } from '../../src/cache/store.js';
import { partial } from '../support/partial.js';
import { describe, expect, test } from 'vitest';
import { createMessageApplier } from '../../src/cache/apply-message.js';
import type { Change, Replacement } from '../../src/cache/coherence/message.js';
import { type Entry, asStale } from '../../src/cache/entry.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import type { RedisStore } from '../../src/cache/redis/store.js';
import { TieredStore } from '../../src/cache/tiered-store.js';
import { bounds, openInstance } from '../support/instances.js';
import { gate } from '../support/gate.js';
import { isSettled } from '../support/manual-clock.js';
import { NOW, entryOf, storeContract } from '../support/store-contract.js';

const KEY = '21.T1/A';
const now = (): number => NOW;
const DISCONNECTED_MAX_AGE_MS = 5000;
const REPLACEMENT: Replacement = { run: 'run', seq: 1, bytes: Buffer.from('entry'), lifeMs: 1000 };
const TICKET: RedisTicket = { run: 'run', bansRun: 'run', seq: 1, ban: 0, isFenced: false, redisClockMs: 0 };

describe('tiered store (memory before Redis)', () => {
  describe('without Redis', () => {
    storeContract(() => Promise.resolve(openInstance()));
  });

  interface FakeRedis {
    isStored: boolean | undefined;
    isFenced: boolean;
    /** False when Redis is down or has lost the state of the key. */
    isAsked: boolean;
    isReadable: boolean;
  }

  const FAKE_REDIS: FakeRedis = { isStored: true, isFenced: false, isAsked: true, isReadable: true };

  /** Opens a store with one entry in Redis. Publications wait for `pass`. */
  function open(options: Partial<FakeRedis> = {}) {
    const { isStored, isFenced, isAsked, isReadable } = { ...FAKE_REDIS, ...options };
    let clockError = 0;
    const memory = new MemoryStore({ bounds, now });
    const { apply } = createMessageApplier(memory, createStoreEvents());
    const published = gate();
    const changes: Change[] = [];
    const far = { entry: entryOf('old') as Entry | undefined };
    const redis = {
      get: () =>
        Promise.resolve(
          isAsked
            ? { entry: far.entry, ticket: { ...TICKET, isFenced } }
            : { entry: undefined, ticket: undefined },
        ),
      isReadable: () => isReadable,
      accepts: () => true,
      set: () => Promise.resolve(isStored),
      replacement: (_key: string, _entry: Entry, ticket: RedisTicket) => ticket && REPLACEMENT,
    } as unknown as RedisStore;
    const publish = async (change: Change): Promise<void> => {
      changes.push(change);
      await published.opened;
      const isSoft = change.kind === 'soften' || (change.kind === 'ban' && change.isSoft);
      far.entry = far.entry && isSoft ? asStale(far.entry) : undefined;
      void apply(change);
    };
    const store = new TieredStore({
      memory,
      hub: partial({ publish }),
      redis,
      fenceLifeMs: 1000,
      disconnectedMaxAgeMs: DISCONNECTED_MAX_AGE_MS,
      now: () => NOW + clockError,
    });
    const put = async (entry: Entry): Promise<boolean> =>
      store.set(KEY, entry, (await store.get(KEY)).ticket);
    const setBy = (ms: number): void => {
      clockError += ms;
    };
    return { memory, store, far, changes, put, pass: published.open, setBy };
  }

  const stale = asStale(entryOf('old'));

  test.each<[what: string, left: Entry | undefined, purge: (store: TieredStore) => Promise<void>]>([
    ['a forgetting', undefined, (store) => store.forget(KEY)],
    ['a ban', undefined, (store) => store.ban({ prefix: '21.T1/', isSoft: false })],
    ['a softening', stale, (store) => store.soften(KEY)],
    ['a soft ban', stale, (store) => store.ban({ prefix: '21.T1/', isSoft: true })],
  ])('returns no fresh entry after %s', async (_what, left, purge) => {
    const { memory, store, pass } = open();
    const purged = purge(store);
    // A read before the publication copies the entry from Redis into memory.
    expect((await store.get(KEY)).entry).toEqual(entryOf('old'));
    expect(memory.peek(KEY)).toEqual(entryOf('old'));
    pass();
    await purged;
    expect((await store.get(KEY)).entry).toEqual(left);
  });

  test('copies no Redis entry into memory when the key was invalidated during the read', async () => {
    const { memory, store } = open();
    const asked = store.get(KEY);
    memory.forget(KEY);
    expect((await asked).entry).toBeUndefined();
    expect(memory.peek(KEY)).toBeUndefined();
  });

  test('copies no Redis entry into memory when this process may have missed a fence', async () => {
    const { memory, store } = open({ isFenced: true });
    expect((await store.get(KEY)).entry).toEqual(entryOf('old'));
    expect(memory.peek(KEY)).toBeUndefined();
  });

  test('returns the newer entry of both tiers, and the memory entry when both are equally old', async () => {
    const { store, far, put } = open();
    await put(entryOf('here', { requestedAt: NOW + 1 }));
    expect((await store.get(KEY)).entry).toEqual(entryOf('here', { requestedAt: NOW + 1 }));
    far.entry = entryOf('there', { requestedAt: NOW + 1 });
    expect((await store.get(KEY)).entry).toEqual(entryOf('here', { requestedAt: NOW + 1 }));
    far.entry = entryOf('there', { requestedAt: NOW + 2 });
    expect((await store.get(KEY)).entry).toEqual(entryOf('there', { requestedAt: NOW + 2 }));
  });

  test('drops from memory an entry that Redis rejects', async () => {
    const { memory, put } = open({ isStored: false });
    expect(await put(entryOf('old'))).toBe(false);
    expect(memory.peek(KEY)).toBeUndefined();
  });

  test.each([
    ['rejects', false],
    ['cannot store', undefined],
  ])('leaves memory empty when Redis %s an entry whose key is fenced', async (_what, isStored) => {
    const { memory, store } = open({ isStored, isFenced: true });
    const { ticket } = await store.get(KEY);
    const kept = store.set(KEY, entryOf('new'), ticket);
    expect(memory.peek(KEY)).toBeUndefined();
    expect(await kept).toBe(false);
    expect(memory.peek(KEY)).toBeUndefined();
  });

  test('leaves memory empty when an entry that is not for Redis has a fence there', async () => {
    const { memory, store } = open({ isFenced: true });
    const { ticket } = await store.get(KEY);
    expect(await store.set(KEY, entryOf('new'), ticket, false)).toBe(false);
    expect(memory.peek(KEY)).toBeUndefined();
  });

  test('leaves an entry in memory when Redis stores it, even after a fence was lowered', async () => {
    const { memory, put } = open({ isFenced: true });
    expect(await put(entryOf('new'))).toBe(true);
    expect(memory.peek(KEY)).toEqual(entryOf('new'));
  });

  test('treats an entry loaded while Redis is unavailable as fresh only for redis.disconnectedMaxAge', async () => {
    const { memory, put } = open({ isAsked: false, isStored: undefined });
    expect(await put(entryOf('new'))).toBe(true);
    expect(memory.peek(KEY)?.staleAt).toBe(NOW + DISCONNECTED_MAX_AGE_MS);
  });

  test('stores an entry in memory when Redis cannot store it', async () => {
    const { memory, put } = open({ isStored: undefined });
    expect(await put(entryOf('new'))).toBe(true);
    expect(memory.peek(KEY)).toEqual(entryOf('new'));
  });

  const NEW = entryOf('new', { requestedAt: NOW + 1 });

  test('stores an authoritative response in Redis together with the message that invalidates older entries', async () => {
    const { memory, store, changes } = open();
    const { ticket } = await store.get(KEY);
    void store.replace(KEY, { entry: NEW, ticket, isUnchanged: false });
    expect(memory.peek(KEY)).toEqual(NEW);
    expect(changes).toMatchObject([{ kind: 'forget', key: KEY, replacement: REPLACEMENT }]);
  });

  test.each<[when: string, options: Parameters<typeof open>[0]]>([
    ['while Redis knows of a write in flight', { isFenced: true }],
    ['that was loaded while Redis was unavailable', { isAsked: false }],
  ])('does not store an authoritative response in Redis %s', async (_when, options) => {
    const { store, changes } = open(options);
    const { ticket } = await store.get(KEY);
    void store.replace(KEY, { entry: NEW, ticket, isUnchanged: false });
    expect(changes).toEqual([{ kind: 'forget', key: KEY, isUnchanged: false }]);
  });

  test('drops from memory an authoritative response that Redis rejects', async () => {
    const { memory, store, pass } = open();
    const { ticket } = await store.get(KEY);
    const replaced = store.replace(KEY, { entry: NEW, ticket, isUnchanged: false });
    pass();
    await replaced;
    expect(memory.peek(KEY)).toBeUndefined();
  });

  test.each([
    ['waits for a changed authoritative response while Redis is away', false, false, false],
    ['does not wait for an unchanged authoritative response while Redis is away', false, true, true],
    ['waits for an unchanged authoritative response when Redis has lost the key state', true, true, false],
  ])('%s', async (_what, isReadable, isUnchanged, isAnswered) => {
    const { store, changes } = open({ isAsked: false, isReadable });
    const { ticket } = await store.get(KEY);
    expect(await isSettled(store.replace(KEY, { entry: NEW, ticket, isUnchanged }))).toBe(isAnswered);
    expect(changes).toHaveLength(1);
  });

  test('deletes an older concurrent load when it does not wait for an authoritative response', async () => {
    const { memory, store } = open({ isAsked: false, isReadable: false });
    const { ticket } = await store.get(KEY);
    memory.replace(KEY, entryOf('older'), memory.moment());
    await store.replace(KEY, { entry: NEW, ticket, isUnchanged: true });
    expect(memory.peek(KEY)).toBeUndefined();
  });

  test('bounds the fence of a write of unknown outcome even when the clock is set back', async () => {
    const { store, changes, pass, setBy } = open();
    pass();
    const fence = await store.fence(KEY);
    setBy(-60_000);
    await fence.unknown();
    expect(changes.at(-1)).toEqual({ kind: 'unknown', key: KEY, fence: '1', lifeMs: 1000 });
  });

  test('counts the fence of a write of unknown outcome from its last request', async () => {
    const { store, changes, pass, setBy } = open();
    pass();
    const fence = await store.fence(KEY);
    setBy(900);
    fence.extend();
    setBy(300);
    await fence.unknown();
    expect(changes.at(-1)).toEqual({ kind: 'unknown', key: KEY, fence: '1', lifeMs: 700 });
  });

  test('assigns each write its own fence, which has a lifetime in case the outcome remains unknown', async () => {
    const { store, changes, pass } = open();
    pass();
    const [one, other] = [await store.fence(KEY), await store.fence(KEY)];
    await one.unknown();
    await other.unchanged();
    const key = KEY;
    expect(changes).toEqual([
      { kind: 'raise', key, fence: '1', lifeMs: 1000 },
      { kind: 'raise', key, fence: '2', lifeMs: 1000 },
      { kind: 'unknown', key, fence: '1', lifeMs: 1000 },
      { kind: 'unchanged', key, fence: '2' },
    ]);
  });
});
