// Failover by a real Sentinel from a failing master to its replica: readers do not notice it.
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { type Guarded, startGuardedRedis } from '../support/redis-sentinel.js';
import { LITTLE_PATIENCE, type RedisServer, describeWithRedis } from '../support/redis-server.js';
import { redisIs, startSeparated, startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const handles = Array.from({ length: 10 }, (_, at) => `21.T11998/guarded-${at}`);
const pathOf = (handle: string): string => `/api/handles/${handle}`;

describe('Redis Sentinel', () => {
  describeWithRedis('proxies on its master', () => {
    let redis: Guarded;
    beforeEach(async () => {
      redis = await startGuardedRedis();
      onTestFinished(() => redis.stop());
      for (const handle of handles) demo.put(handle, numbered(0));
      demo.reset();
      await redis.isSafe();
    });
    const env = (): Record<string, string> => ({ REDIS_SENTINELS: redis.sentinels, ...LITTLE_PATIENCE });
    const start = (): Promise<Proxy> => startSharing({ upstreamUrl: demo.url, env: env() });
    const readAll = (proxy: Proxy) => Promise.all(handles.map((handle) => proxy.ask(pathOf(handle))));

    test.each<[string, (master: RedisServer) => unknown]>([
      ['is killed', (master) => master.stop()],
      [
        'is frozen',
        (master) => {
          master.freeze();
        },
      ],
    ])(
      'continue when the master %s, switch to the next master, and publish their writes there',
      async (_what, lose) => {
        const [one, other] = [await start(), await start()];
        await readAll(one);
        await readAll(other);
        const before = await redis.master();
        await lose(before);
        for (const handle of handles) {
          expect((await putNumbered(one.url, pathOf(handle), 5)).status).toBe(200);
        }
        expect((await readAll(one)).map(numberIn)).toEqual(handles.map(() => 5));
        expect((await readAll(other)).map(({ status }) => status)).toEqual(handles.map(() => 200));
        await redis.hasFollowed(before);
        await Promise.all([redisIs(one, 1), redisIs(other, 1)]);
        await expect.poll(async () => (await readAll(other)).map(numberIn)).toEqual(handles.map(() => 5));
        expect((await readAll(await start())).map(numberIn)).toEqual(handles.map(() => 5));
        // The new master also delivers the messages between the instances.
        const [handle = ''] = handles;
        await putNumbered(one.url, pathOf(handle), 8);
        await expect.poll(async () => numberIn(await other.ask(pathOf(handle)))).toBe(8);
      },
    );
  });

  test('lets proxies start and serve while no Sentinel is reachable', async () => {
    const proxy = await startSeparated({ upstreamUrl: demo.url, env: { REDIS_SENTINELS: '127.0.0.1:1' } });
    demo.put('21.T11998/unguarded', numbered(0));
    expect((await proxy.ask(pathOf('21.T11998/unguarded'))).status).toBe(200);
    // Redis counts as down after several failed attempts to find the master.
    await expect
      .poll(async () => (await proxy.ask(pathOf('21.T11998/unguarded'))).headers['cache-status'])
      .toContain('hit');
  });
});
