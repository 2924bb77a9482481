// The tiered store on a real Redis: in one instance, across two instances, and with empty memory.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { groupNames } from '../../src/cache/redis/namespace.js';
import type { Ticket } from '../../src/cache/store.js';
import { TieredStore } from '../../src/cache/tiered-store.js';
import {
  FENCE_LIFE_MS,
  type OpenInstance,
  PREFIX,
  bounds,
  openLinked,
  slowClock,
} from '../support/instances.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { type Opened, entryOf, storeContract, readBack } from '../support/store-contract.js';

const { now } = slowClock;

/** Returns a new store of the instance, with empty memory. */
function withEmptyMemory({ redisStore, hub }: OpenInstance): TieredStore {
  const memory = new MemoryStore({ bounds, now });
  return new TieredStore({ memory, hub, redis: redisStore, fenceLifeMs: FENCE_LIFE_MS, now });
}

/** Reads with empty memory each time, so an entry can only come from Redis. */
function redisAlone(instance: OpenInstance): Opened {
  const { store, close } = instance;
  const readers = new WeakMap<Ticket, TieredStore>();
  const readerOf = (ticket: Ticket): TieredStore => readers.get(ticket)!;
  return {
    close,
    store: {
      async get(key) {
        const reader = withEmptyMemory(instance);
        const found = await reader.get(key);
        readers.set(found.ticket, reader);
        return found;
      },
      accepts: (key, ticket) => readerOf(ticket).accepts(key, ticket),
      set: (key, entry, ticket) => readerOf(ticket).set(key, entry, ticket),
      replace: (key, answer) => readerOf(answer.ticket).replace(key, answer),
      forget: (key) => store.forget(key),
      soften: (key) => store.soften(key),
      ban: (ban) => store.ban(ban),
      fence: (key) => store.fence(key),
    },
  };
}

/** Writes through one instance and reads through the other. */
function acrossInstances(writer: OpenInstance, reader: OpenInstance): Opened {
  return {
    close: async () => {
      await Promise.all([writer.close(), reader.close()]);
    },
    store: {
      get: (key) => reader.store.get(key),
      accepts: (key, ticket) => reader.store.accepts(key, ticket),
      set: (key, entry, ticket) => reader.store.set(key, entry, ticket),
      replace: (key, answer) => reader.store.replace(key, answer),
      forget: (key) => writer.store.forget(key),
      soften: (key) => writer.store.soften(key),
      ban: (ban) => writer.store.ban(ban),
      async fence(key) {
        // Waits for a later message, because a fence is not acknowledged, and messages arrive in order.
        const arrived = (): Promise<void> => writer.store.forget(`${key} and its fence`);
        const fence = await writer.store.fence(key);
        await arrived();
        const unchanged = async (): Promise<void> => {
          await fence.unchanged();
          await arrived();
        };
        return { ...fence, unchanged };
      },
    },
  };
}

describeWithRedis('tiered store on a real Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  const open = (): Promise<OpenInstance> => openLinked({ url: redis.url });

  async function openBoth(): Promise<[OpenInstance, OpenInstance]> {
    const both = await Promise.all([open(), open()]);
    onTestFinished(async () => {
      await Promise.all(both.map((each) => each.close()));
    });
    return both;
  }

  describe('in one instance', () => {
    storeContract(open);
  });

  describe('with empty memory', () => {
    storeContract(async () => redisAlone(await open()));
  });

  describe('across two instances', () => {
    storeContract(async () => acrossInstances(await open(), await open()));
  });

  test('rejects a load that started before a different instance invalidated the key', async () => {
    const [one, other] = await openBoth();
    const key = '21.T1/SHARED';
    const { ticket } = await one.store.get(key);
    await other.store.forget(key);
    expect(one.store.accepts(key, ticket)).toBe(false);
    expect(await one.store.set(key, entryOf('old'), ticket)).toBe(false);
  });

  test('drops from memory an entry that Redis rejects', async () => {
    const [one, other] = await openBoth();
    const key = '21.T1/REFUSED';
    const store = withEmptyMemory(one);
    const { ticket } = await store.get(key);
    await other.store.forget(key);
    expect(await store.set(key, entryOf('old'), ticket)).toBe(false);
    expect((await store.get(key)).entry).toBeUndefined();
  });

  test('reads Redis but stores no memory copy while an unreceived fence is raised', async () => {
    const [one, other] = await openBoth();
    const key = '21.T1/FENCED';
    const old = entryOf('old');
    // The entry may expire before the read on a stalled machine.
    const readUnderFence = async () => {
      await one.store.set(key, old, (await one.store.get(key)).ticket);
      const fence = await one.store.fence(key);
      const memory = new MemoryStore({ bounds, now });
      const { redisStore, hub } = other;
      const late = new TieredStore({ memory, hub, redis: redisStore, fenceLifeMs: 1, now });
      const { entry } = await late.get(key);
      const copy = memory.peek(key);
      await fence.unchanged();
      await late.get(key);
      return { entry, copy, copyAfter: memory.peek(key) };
    };
    const found = { entry: readBack(old), copy: undefined, copyAfter: readBack(old) };
    await expect.poll(readUnderFence).toEqual(found);
  });

  test("keeps an entry for 3 s under a dead writer's fence, and for its TTL after a rejected write", async () => {
    const [one] = await openBoth();
    const key = '21.T1/REFUSED-2';
    const lifeLeftMs = async (): Promise<number> =>
      (await one.commands?.redis.pttl(groupNames(PREFIX, key)[0])) ?? 0;
    // The entry may expire before the rejected write on a stalled machine.
    const fenceAndRefuse = async (): Promise<[boolean, boolean]> => {
      await one.store.set(key, entryOf('old'), (await one.store.get(key)).ticket);
      const fence = await one.store.fence(key);
      const fencedMs = await lifeLeftMs();
      await fence.unchanged();
      return [fencedMs <= 3000, (await lifeLeftMs()) > 45_000_000];
    };
    await expect.poll(fenceAndRefuse).toEqual([true, true]);
  });

  test('has applied a change on every instance when the change is acknowledged', async () => {
    const [one, other] = await openBoth();
    const key = '21.T1/RECEIVED';
    await one.store.forget(key);
    for (const { delivered } of [one, other]) expect(delivered).toContainEqual({ kind: 'forget', key });
  });

  test('returns no entry from before a Redis restart, even if Redis has loaded it from a dump', async () => {
    const [one] = await openBoth();
    const key = '21.T1/RESTORED';
    await one.store.set(key, entryOf('old'), (await one.store.get(key)).ticket);
    await one.commands?.redis.hset(groupNames(PREFIX, key)[1], 'run', 'another-run');
    expect((await withEmptyMemory(one).get(key)).entry).toBeUndefined();
  });
});
