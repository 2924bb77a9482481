// Records without a Handle server outlive each doubt about them: no server could answer it.
import '../support/real-sockets.js';
import { expect, onTestFinished, test } from 'vitest';
import { startProxy } from '../support/proxy.js';
import { fileOf, recordLine } from '../support/record-files.js';
import { PATIENCE, describeWithRedis, startRedis } from '../support/redis-server.js';
import { HANDLE, PATH } from '../support/upstream.js';

describeWithRedis('proxy with a seed file, Redis and no upstream', () => {
  test('serves its records while Redis is connected, away, and connected again', async () => {
    const redis = await startRedis();
    onTestFinished(redis.stop);
    const SEED_FILE = fileOf(`${recordLine(HANDLE)}\n`);
    const proxy = await startProxy({
      UPSTREAM_URL: 'none',
      SEED_FILE,
      REDIS_URL: redis.url,
      ...PATIENCE,
    });
    const { cache } = proxy.app.host;
    const whenRedisIs = (state: string) =>
      expect.poll(() => cache.redisState(), { timeout: 20_000 }).toBe(state);
    await whenRedisIs('up');
    await expect.poll(() => proxy.app.operations.inspect(HANDLE)).toHaveLength(1);
    expect((await proxy.ask(PATH)).status).toBe(200);
    await redis.stop();
    await whenRedisIs('down');
    expect((await proxy.ask(PATH)).status).toBe(200);
    await redis.restart();
    await whenRedisIs('up');
    expect((await proxy.ask(PATH)).status).toBe(200);
  });
});
