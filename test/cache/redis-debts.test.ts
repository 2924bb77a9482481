// What Redis could not be told is told before Redis is read again, whatever is written meanwhile.
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { RedisStore, type StoreLink } from '../../src/cache/redis-store.js';

interface FakeRedis {
  link: StoreLink;
  /** Whether commands are taken. */
  isUp: boolean;
  /** Names of what was told, in order: keys, or `epoch` with the step. */
  told: string[];
  /** Runs in the middle of the next command. */
  meanwhile: () => Promise<unknown>;
  /** Makes commands fail. */
  failure: Error | undefined;
  lost: number;
}

function fakeRedis(): FakeRedis {
  let epoch = 0;
  const evaluate = async (_script: string, count: number, ...args: (string | number)[]): Promise<number> => {
    const { meanwhile } = fake;
    fake.meanwhile = () => Promise.resolve();
    await meanwhile();
    if (fake.failure !== undefined) throw fake.failure;
    const step = Number(args[2]);
    fake.told.push(count === 1 ? `epoch+${step}` : (/\{(.*)\}/.exec(String(args[0]))?.[1] ?? ''));
    if (count === 1) epoch += step;
    return epoch;
  };
  const none = (): Promise<string[]> => Promise.resolve([]);
  const commands = { eval: evaluate, zrange: none, zrangebyscore: none } as unknown as Redis;
  const fake: FakeRedis = {
    isUp: true,
    told: [],
    meanwhile: () => Promise.resolve(),
    failure: undefined,
    lost: 0,
    link: {
      commands,
      keyPrefix: 'test:',
      announcement: (message) => ['channel', message],
      everybodyHeard: () => Promise.resolve(),
      run: async (_name, command) => (fake.isUp ? command(commands).catch(() => undefined) : undefined),
      lose: () => {
        fake.isUp = false;
        fake.lost++;
      },
    },
  };
  return fake;
}

const NOW = 1_000_000;
function storeOn(redis: FakeRedis, { mostDebts = 100, now = (): number => NOW } = {}): RedisStore {
  const lives = { markLifeMs: 60_000, fenceLifeMs: 1000 };
  return new RedisStore(redis.link, { ...lives, now, mostDebts });
}

test('what was written while Redis was away is told once it is back, and only once', async () => {
  const redis = fakeRedis();
  const store = storeOn(redis);
  redis.isUp = false;
  await store.forget('A');
  await store.forget('B');
  expect(redis.told).toEqual([]);
  await store.settleDebts();
  expect(redis.told).toEqual(['epoch+0', 'A', 'B']);
  await store.settleDebts();
  expect(redis.told.slice(3)).toEqual(['epoch+0']);
});

test('a key that is written again while it is being told is told again', async () => {
  const redis = fakeRedis();
  const store = storeOn(redis);
  redis.isUp = false;
  await store.forget('A');
  redis.meanwhile = () => {
    // The first command is about the epoch, the second about the key.
    redis.meanwhile = () => store.forget('A');
    return Promise.resolve();
  };
  await store.settleDebts();
  expect(redis.told).toEqual(['epoch+0', 'A', 'A']);
});

test('a key stays owed when telling fails', async () => {
  const redis = fakeRedis();
  const store = storeOn(redis);
  redis.isUp = false;
  await store.forget('A');
  redis.failure = new Error('Connection is closed.');
  await expect(store.settleDebts()).rejects.toThrow();
  redis.failure = undefined;
  await store.settleDebts();
  expect(redis.told).toEqual(['epoch+0', 'A']);
});

test('more keys than can be remembered begin a new epoch, once', async () => {
  const redis = fakeRedis();
  const store = storeOn(redis, { mostDebts: 2 });
  redis.isUp = false;
  for (const key of ['A', 'B', 'C', 'D']) await store.forget(key);
  await store.settleDebts();
  await store.settleDebts();
  expect(redis.told).toEqual(['epoch+1', 'epoch+0']);
});

test('what is written while the new epoch begins is told on its own', async () => {
  const redis = fakeRedis();
  const store = storeOn(redis, { mostDebts: 2 });
  redis.isUp = false;
  for (const key of ['A', 'B', 'C']) await store.forget(key);
  redis.meanwhile = () => store.forget('D');
  await store.settleDebts();
  expect(redis.told).toEqual(['epoch+1', 'D']);
});

test('a new epoch that could not be begun is begun the next time', async () => {
  const redis = fakeRedis();
  const store = storeOn(redis, { mostDebts: 2 });
  redis.isUp = false;
  for (const key of ['A', 'B', 'C']) await store.forget(key);
  redis.failure = new Error('Connection is closed.');
  await expect(store.settleDebts()).rejects.toThrow();
  redis.failure = undefined;
  await store.settleDebts();
  expect(redis.told).toEqual(['epoch+1']);
});

test('what was told shortly before Redis was lost is told again, and nothing older', async () => {
  let time = NOW;
  const redis = fakeRedis();
  const store = storeOn(redis, { now: () => time });
  await store.forget('OLD');
  time += 10_001;
  await store.forget('NEW');
  redis.told.length = 0;
  store.onLost();
  await store.settleDebts();
  expect(redis.told).toEqual(['epoch+0', 'NEW']);
});

test('more recent writes than can be remembered are no reason to forget one of them', async () => {
  const redis = fakeRedis();
  const store = storeOn(redis, { mostDebts: 100_000 });
  for (let count = 0; count <= 10_000; count++) await store.forget(`KEY-${count}`);
  redis.told.length = 0;
  store.onLost();
  await store.settleDebts();
  expect(redis.told).toEqual(['epoch+1']);
});

test('Redis is not read while something is owed: a debt that came late makes it count as lost', async () => {
  const redis = fakeRedis();
  const store = storeOn(redis);
  redis.isUp = false;
  await store.forget('A');
  redis.isUp = true;
  redis.lost = 0;
  await store.keepEpoch();
  expect(redis.lost).toBe(1);
});
