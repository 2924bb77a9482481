// Failback to an outdated Redis master: it hangs, its replica takes over and dies, and it is elected again.
import { Redis } from 'ioredis';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { readFeed } from '../support/changes.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { type Guarded, startGuardedRedis } from '../support/redis-sentinel.js';
import { startOperated } from '../support/operated-proxy.js';
import type { Proxy } from '../support/proxy.js';
import { LITTLE_PATIENCE, type RedisServer, describeWithRedis } from '../support/redis-server.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const handles = Array.from({ length: 20 }, (_, at) => `21.T11998/failed-back-${at}`);
const pathOf = (handle: string): string => `/api/handles/${handle}`;
const every = (number: number): number[] => handles.map(() => number);

const readAll = async (proxy: Proxy): Promise<number[]> =>
  (await Promise.all(handles.map((handle) => proxy.ask(pathOf(handle))))).map(numberIn);

/** Returns the number of instances subscribed to messages of this server. */
async function subscribersOf({ url }: RedisServer): Promise<number> {
  const client = new Redis(url);
  const [channel = ''] = (await client.pubsub('CHANNELS', '*:messages')) as string[];
  const [, count] = await client.pubsub('NUMSUB', channel);
  client.disconnect();
  return Number(count);
}

describeWithRedis('re-elected outdated Redis master', () => {
  let redis: Guarded;
  beforeEach(async () => {
    redis = await startGuardedRedis();
    onTestFinished(() => redis.stop());
    for (const handle of handles) demo.put(handle, numbered(1));
    demo.reset();
    await redis.isSafe();
  });

  const isLinkedTo = async (server: RedisServer, proxies: readonly Proxy[]): Promise<void> => {
    await Promise.all(proxies.map((proxy) => redisIs(proxy, 1)));
    await expect.poll(() => subscribersOf(server)).toBe(proxies.length);
  };

  test('reports a gap in the change feed, without a further change, for those under the other master', async () => {
    const env = { REDIS_SENTINELS: redis.sentinels, CHANGES_ENABLED: 'true', ...LITTLE_PATIENCE };
    const proxy = await startOperated(demo.url, env);
    const first = await redis.master();
    await isLinkedTo(first, [proxy]);
    const reader = await readFeed(proxy.place.ADMIN_URL);
    await expect.poll(reader.lastId).toBeDefined();
    const start = reader.lastId();
    await redis.isSafe();
    first.freeze();
    await redis.hasFollowed(first);
    const second = await redis.master();
    await isLinkedTo(second, [proxy]);
    expect((await putNumbered(proxy.url, pathOf(handles[0]!), 2)).status).toBe(200);
    await expect.poll(() => reader.events.map(({ event }) => event)).toEqual(['gap', 'change']);
    await second.stop();
    first.thaw();
    await redis.hasFollowed(second);
    await isLinkedTo(first, [proxy]);
    const { events } = await readFeed(proxy.place.ADMIN_URL, start);
    await expect.poll(() => events.map(({ event }) => event)).toEqual(['gap']);
    await expect.poll(() => reader.events.at(-1)).toEqual(events[0]);
  });

  test('restores no record older than a write acknowledged under the other master', async () => {
    const env = { REDIS_SENTINELS: redis.sentinels, ...LITTLE_PATIENCE };
    const start = (): Promise<Proxy> => startSharing({ upstreamUrl: demo.url, env });
    const [one, other] = [await start(), await start()];
    for (const proxy of [one, other]) expect(await readAll(proxy)).toEqual(every(1));
    const first = await redis.master();
    first.freeze();
    await redis.hasFollowed(first);
    const second = await redis.master();
    await isLinkedTo(second, [one, other]);
    for (const handle of handles) expect((await putNumbered(one.url, pathOf(handle), 2)).status).toBe(200);
    for (const proxy of [one, other]) expect(await readAll(proxy)).toEqual(every(2));
    await second.stop();
    first.thaw();
    await redis.hasFollowed(second);
    await isLinkedTo(first, [one, other]);
    // A new instance knows of no other master and reads Redis first.
    for (const proxy of [await start(), other, one]) expect(await readAll(proxy)).toEqual(every(2));
  });
});
