// Entries in a Redis Cluster, where the bans may be on a different master.
import { describe, expect, test } from 'vitest';
import { Bans } from '../../../src/cache/coherence/bans.js';
import { RedisStore, type RedisStoreDeps } from '../../../src/cache/redis/store.js';
import { stateName } from '../../../src/cache/redis/namespace.js';
import { NOW, entryOf } from '../../support/store-contract.js';

const KEY = '21.T1/KEY';
const PREFIX = 't:';
const RUN = 'run-of-the-entry';

/** Opens a store whose entry is on a different master than the bans. */
function open() {
  const world = {
    bans: new Bans('1-run-of-the-bans'),
    /** Run of the server with the bans. */
    runOfBans: '1-run-of-the-bans',
    stored: undefined as Buffer | undefined,
    reads: 0,
  };
  const redis = {
    mgetBuffer() {
      world.reads++;
      return Promise.resolve([world.stored ?? null]);
    },
    hmget: () => Promise.resolve([RUN, '7', null]),
  };
  const commands = {
    keyPrefix: PREFIX,
    runOf: (name: string) => (name === stateName(PREFIX, 'bans') ? world.runOfBans : RUN),
    run: (_name: string, command: (client: typeof redis) => Promise<unknown>) => command(redis),
    script(_source: string, _keys: readonly string[], args: readonly unknown[]) {
      world.stored = args[3] as Buffer;
      return Promise.resolve(1);
    },
  } as unknown as RedisStoreDeps['commands'];
  const store = new RedisStore({
    commands,
    bans: () => world.bans,
    isLinked: () => true,
    now: () => NOW,
  });
  return { world, store };
}

describe('Redis store in a cluster', () => {
  test('returns an entry while both masters are unchanged', async () => {
    const { store } = open();
    await store.set(KEY, entryOf('kept'), (await store.get(KEY)).ticket);
    expect((await store.get(KEY)).entry).toEqual(entryOf('kept'));
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
