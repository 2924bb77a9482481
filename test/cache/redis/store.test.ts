// Entries in Redis: in a cluster, where the bans may be on a different master, and of instances whose clocks
// disagree.
import { fc, test } from '../../support/property.js';
import { describe, expect } from 'vitest';
import { Bans } from '../../../src/cache/coherence/bans.js';
import { RedisStore, type RedisStoreDeps } from '../../../src/cache/redis/store.js';
import { SYNC, TICKET } from '../../../src/cache/redis/coherence-scripts.js';
import { stateName } from '../../../src/cache/redis/namespace.js';
import { NOW, entryOf } from '../../support/store-contract.js';

const KEY = '21.T1/KEY';
const PREFIX = 't:';
const HOUR_MS = 3_600_000;
const RUN = 'run-of-the-entry';

/** Opens a store whose entry is on a different master than the bans. */
function open() {
  const world = {
    bans: new Bans('1-run-of-the-bans'),
    /** Run of the server with the bans. */
    runOfBans: '1-run-of-the-bans',
    /** Run of the server with the entry. */
    run: RUN,
    /** Runs for which the state of the group was opened. */
    opened: [] as unknown[],
    stored: undefined as Buffer | undefined,
    reads: 0,
    redisNow: NOW,
  };
  const redis = {
    mgetBuffer() {
      world.reads++;
      return Promise.resolve([world.stored ?? null]);
    },
  };
  const commands = {
    keyPrefix: PREFIX,
    bansName: stateName(PREFIX, 'bans'),
    runOf: (name: string) => (name === stateName(PREFIX, 'bans') ? world.runOfBans : world.run),
    run: (_name: string, command: (client: typeof redis) => Promise<unknown>) => command(redis),
    script(source: string, _keys: readonly string[], args: readonly unknown[]) {
      if (source === TICKET) return Promise.resolve([RUN, '7', null, String(world.redisNow)]);
      if (source === SYNC) return Promise.resolve(world.opened.push(args[0]));
      world.stored = args[3] as Buffer;
      return Promise.resolve(1);
    },
  } as unknown as RedisStoreDeps['commands'];
  /** Opens the store of an instance whose time differs from the clock of Redis. */
  const storeAt = (aheadMs: number): RedisStore =>
    new RedisStore({
      commands,
      bans: () => world.bans,
      isLinked: () => true,
      now: () => world.redisNow + aheadMs,
    });
  return { world, storeAt, store: storeAt(0) };
}

describe('Redis store in a cluster', () => {
  test('returns an entry while both masters are unchanged', async () => {
    const { store } = open();
    await store.set(KEY, entryOf('kept'), (await store.get(KEY)).ticket);
    expect((await store.get(KEY)).entry).toEqual(entryOf('kept'));
  });

  test('misses an entry of a restarted master whose group state is from an old dump, and opens the state again', async () => {
    const { world, store } = open();
    await store.set(KEY, entryOf('kept'), (await store.get(KEY)).ticket);
    world.run = 'a-restarted-run-';
    expect(await store.get(KEY)).toMatchObject({ entry: undefined, ticket: undefined });
    expect(world.opened).toEqual(['a-restarted-run-']);
  });

  test('misses an entry stored before a new master took over the bans', async () => {
    const { world, store } = open();
    await store.set(KEY, entryOf('kept'), (await store.get(KEY)).ticket);
    world.runOfBans = '2-run-of-the-bans';
    world.bans = new Bans(world.runOfBans);
    expect((await store.get(KEY)).entry).toBeUndefined();
  });

  test('rejects a load that started before a new master took over the bans', async () => {
    const { world, store } = open();
    const { ticket } = await store.get(KEY);
    world.runOfBans = '2-run-of-the-bans';
    world.bans = new Bans(world.runOfBans);
    expect(await store.set(KEY, entryOf('old'), ticket)).toBe(false);
    expect(world.stored).toBeUndefined();
  });

  test('is not read before the bans of its new master are known', async () => {
    const { world, store } = open();
    await store.get(KEY);
    world.runOfBans = '2-run-of-the-bans';
    const { entry, ticket } = await store.get(KEY);
    expect([entry, ticket, world.reads]).toEqual([undefined, undefined, 1]);
    world.bans = new Bans(world.runOfBans);
    await store.get(KEY);
    expect(world.reads).toBe(2);
  });
});

describe('Redis store of instances whose clocks disagree', () => {
  const anyHours = fc.integer({ min: -100_000, max: 100_000 }).map((hours) => hours * 3_600_000);
  const ages = fc.integer({ min: 0, max: 3_599_999 });

  test.prop([anyHours, anyHours, ages])(
    'gives an entry its age, and no longer TTL',
    async (one, other, age) => {
      const { world, storeAt } = open();
      const loadedAt = NOW + one;
      const entry = entryOf('x', { requestedAt: loadedAt, staleAt: loadedAt + 3_600_000 });
      const writer = storeAt(one);
      await writer.set(KEY, { ...entry, deleteAt: loadedAt + 7_200_000 }, (await writer.get(KEY)).ticket);
      world.redisNow += age;
      const now = world.redisNow + other;
      expect((await storeAt(other).get(KEY)).entry).toMatchObject({
        requestedAt: now - age,
        staleAt: now - age + 3_600_000,
        deleteAt: now - age + 7_200_000,
      });
    },
  );

  test('counts the time that Redis takes to reply as age, on both instances', async () => {
    const { world, store } = open();
    const { ticket } = await store.get(KEY);
    await store.set(KEY, entryOf('x'), ticket && { ...ticket, redisClockMs: -200 });
    world.redisNow += 300;
    expect((await store.get(KEY)).entry).toMatchObject({ requestedAt: NOW - 200 });
  });

  test('misses an entry whose age is unknown, because the clock of Redis was set back', async () => {
    const { world, store } = open();
    await store.set(KEY, entryOf('x'), (await store.get(KEY)).ticket);
    world.redisNow -= 1000;
    expect((await store.get(KEY)).entry).toBeUndefined();
  });

  test('counts an entry older than such a step as younger by the step: the exception in coherence/README.md', async () => {
    const { world, store, storeAt } = open();
    const { requestedAt } = entryOf('x');
    await store.set(KEY, entryOf('x', { deleteAt: NOW + 7_200_000 }), (await store.get(KEY)).ticket);
    // Two hours later, Redis has been set back by one.
    world.redisNow += HOUR_MS;
    const { entry } = await storeAt(HOUR_MS).get(KEY);
    expect(entry).toMatchObject({ requestedAt: requestedAt + HOUR_MS });
  });
});
