// A slow Redis connection: readers wait at most redis.commandTimeout in total, and then bypass Redis.
import { beforeEach, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { describeWithRedis } from '../support/redis-server.js';
import { useRedis } from '../support/use-redis.js';
import { redisIs, startSeparated, startSharing } from '../support/sharing-proxies.js';
import { type SlowLine, startSlowLine } from '../support/slow-line.js';
import { startStallClock } from '../support/stall-clock.js';

const demo = await startDemoServer();
const handles = Array.from({ length: 20 }, (_, at) => `21.T11998/slow-${at}`);
const pathOf = (handle: string): string => `/api/handles/${handle}`;
const LIMIT_MS = 100;

describeWithRedis('slow Redis', () => {
  const redis = useRedis();
  let line: SlowLine;
  beforeEach(async () => {
    await redis.client.flushall();
    line = await startSlowLine(redis.port, 0);
    for (const handle of handles) demo.put(handle, numbered(0));
    demo.reset();
  });

  const sharing = () => ({
    redisUrl: `redis://127.0.0.1:${line.port}`,
    upstreamUrl: demo.url,
    env: { REDIS_COMMAND_TIMEOUT: `${LIMIT_MS}ms` },
  });
  const readAll = (proxy: Proxy) => Promise.all(handles.map((handle) => proxy.ask(pathOf(handle))));

  test('costs all readers together a single redis.commandTimeout, and then nothing', async () => {
    const proxy = await startSharing(sharing());
    line.delayMs = 20 * LIMIT_MS;
    const stalledMs = startStallClock();
    const startedAt = performance.now();
    expect((await readAll(proxy)).map(({ status }) => status)).toEqual(handles.map(() => 200));
    for (const handle of handles) await proxy.ask(pathOf(handle));
    expect(performance.now() - startedAt - stalledMs()).toBeLessThan(10 * LIMIT_MS);
    await redisIs(proxy, 0);
    expect(demo.asked).toBe(handles.length);
  });

  test('is used again once it is fast, and no write made in the meantime is lost', async () => {
    const [one, other] = [await startSharing(sharing()), await startSharing(sharing())];
    await readAll(other);
    line.delayMs = 20 * LIMIT_MS;
    await Promise.all([redisIs(one, 0), redisIs(other, 0)]);
    for (const handle of handles) expect((await putNumbered(one.url, pathOf(handle), 4)).status).toBe(200);
    line.delayMs = 0;
    await Promise.all([redisIs(one, 1), redisIs(other, 1)]);
    await expect.poll(async () => (await readAll(other)).map(numberIn)).toEqual(handles.map(() => 4));
  });

  test('does not prevent a proxy from starting', async () => {
    line.delayMs = 20 * LIMIT_MS;
    const proxy = await startSeparated(sharing());
    expect((await readAll(proxy)).map(({ status }) => status)).toEqual(handles.map(() => 200));
    line.delayMs = 0;
    await redisIs(proxy, 1);
  });
});
