import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/cache/memory-store.js';
import { RedisLink } from '../../src/cache/redis-link.js';
import { RedisStore } from '../../src/cache/redis-store.js';
import { TwoTierStore } from '../../src/cache/two-tier-store.js';
import { PATIENT_MS, type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { NOW, entryOf, storeContract } from '../support/store-contract.js';

const bounds = { maxBytes: 10_000_000, found: { maxEntries: 1000 }, notFound: { maxEntries: 1000 } };
const now = (): number => NOW;
/** Longer than a busy machine stands still: entries in Redis expire with the fence. */
const FENCE_LIFE_MS = 60_000;
const memoryStore = (): MemoryStore => new MemoryStore({ bounds, fenceLifeMs: FENCE_LIFE_MS, now });

describeWithRedis('the stores on a real Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  async function openLink(onMessage: (message: string) => void = () => undefined): Promise<RedisLink> {
    const options = { url: redis.url, keyPrefix: 'test:', commandTimeoutMs: PATIENT_MS };
    return new Promise((resolve) => {
      const link: RedisLink = new RedisLink(
        {
          ...options,
          onState: (state) => {
            if (state === 'up') resolve(link);
          },
        },
        onMessage,
      );
    });
  }
  const storeOn = (link: RedisLink): RedisStore =>
    new RedisStore(link, { markLifeMs: 120_000, fenceLifeMs: FENCE_LIFE_MS, now });

  describe('the Redis store', () => {
    storeContract(async () => {
      const link = await openLink();
      return { store: storeOn(link), close: () => link.close() };
    });
  });

  describe('the two tiers', () => {
    storeContract(async () => {
      const link = await openLink();
      return { store: new TwoTierStore(memoryStore(), storeOn(link)), close: () => link.close() };
    });
  });

  test('an instance does not store what it loaded before another instance forgot the key', async () => {
    const [one, other] = await Promise.all([openLink(), openLink()]);
    const key = '21.T1/SHARED';
    const { ticket } = await storeOn(one).get(key);
    await storeOn(other).forget(key);
    expect(await storeOn(one).set(key, entryOf('old'), ticket)).toBe(false);
    await Promise.all([one.close(), other.close()]);
  });

  test('what Redis refuses does not stay in memory', async () => {
    const [one, other] = await Promise.all([openLink(), openLink()]);
    const memory = memoryStore();
    const tiers = new TwoTierStore(memory, storeOn(one));
    const key = '21.T1/REFUSED';
    const { ticket } = await tiers.get(key);
    await storeOn(other).forget(key);
    expect(await tiers.set(key, entryOf('old'), ticket)).toBe(false);
    expect(memory.peek(key)).toBeUndefined();
    await Promise.all([one.close(), other.close()]);
  });

  test('an instance that has not heard of a fence answers from Redis, but keeps no copy of its own', async () => {
    const [one, other] = await Promise.all([openLink(), openLink()]);
    const key = '21.T1/FENCED';
    const { ticket } = await storeOn(one).get(key);
    await storeOn(one).set(key, entryOf('old'), ticket);
    const fence = await storeOn(one).fence(key);
    const memory = memoryStore();
    const late = new TwoTierStore(memory, storeOn(other));
    expect((await late.get(key)).entry).toEqual(entryOf('old'));
    expect(memory.peek(key)).toBeUndefined();
    await fence.unchanged();
    await late.get(key);
    expect(memory.peek(key)).toEqual(entryOf('old'));
    await Promise.all([one.close(), other.close()]);
  });

  test('a fresh entry expires with the fence of a writer that died, and lives on after a refused write', async () => {
    const link = await openLink();
    const store = storeOn(link);
    for (const [key, lifeMs] of [
      ['21.T1/DEAD', FENCE_LIFE_MS],
      ['21.T1/REFUSED-2', 90_000_000],
    ] as const) {
      await store.set(key, entryOf('old'), (await store.get(key)).ticket);
      const fence = await store.fence(key);
      if (lifeMs > FENCE_LIFE_MS) await fence.unchanged();
      const left = await link.commands.pttl(`test:{${key}}:entry`);
      expect(left).toBeGreaterThan(lifeMs / 2);
      expect(left).toBeLessThanOrEqual(lifeMs);
    }
    await link.close();
  });

  test('every instance hears which key was forgotten', async () => {
    let hear: (key: string) => void = () => undefined;
    const heard = new Promise<string>((resolve) => {
      hear = resolve;
    });
    const [one, other] = await Promise.all([
      openLink(),
      openLink((key) => {
        hear(key);
      }),
    ]);
    await storeOn(one).forget('21.T1/HEARD');
    expect(await heard).toBe('forget - 0 21.T1/HEARD');
    await Promise.all([one.close(), other.close()]);
  });
});
