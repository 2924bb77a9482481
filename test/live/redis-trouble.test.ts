// Redis is optional: proxies start and serve without it, and use it again when it returns.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import type { Proxy } from '../support/proxy.js';
import { startDemoServer } from '../support/demo.js';
import { PATIENT_MS, type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { startStallClock } from '../support/stall-clock.js';
import { metric, redisIs, startSeparated, startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/page';
const PATH = `/api/handles/${HANDLE}`;

const recordOf = (path: string): unknown[] => [
  { index: 1, type: 'URL', data: { format: 'string', value: `https://example.org/${path}` } },
];

describeWithRedis('unavailable Redis', () => {
  let redis: RedisServer;
  let client: Redis;
  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.url, { lazyConnect: true });
    client.on('error', () => undefined);
  });
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });
  beforeEach(async () => {
    redis.thaw();
    await redis.restart();
    demo.put(HANDLE, recordOf('first'));
    demo.reset();
  });

  const start = (env: Record<string, string> = {}): Promise<Proxy> =>
    startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env });
  /** Reads the record, and waits until Redis has its entry. */
  const load = async (proxy: Proxy): Promise<void> => {
    await proxy.ask(PATH);
    await expect.poll(() => client.keys('*:entry:*/PAGE')).toHaveLength(1);
  };
  const lose: Record<string, { away: () => unknown; back: () => unknown }> = {
    stopped: { away: () => redis.stop(), back: () => redis.restart() },
    frozen: {
      away: () => {
        redis.freeze();
      },
      back: () => {
        redis.thaw();
      },
    },
  };
  const kinds = Object.keys(lose);

  test.each(kinds)('appears in the metrics when it is %s', async (kind) => {
    const proxy = await start();
    const errors = (): Promise<number> => metric(proxy, 'handle_proxy_redis_errors_total');
    // Above 0 only if the machine stalled.
    const before = await errors();
    await lose[kind]!.away();
    await redisIs(proxy, 0);
    await expect.poll(errors).toBeGreaterThan(before);
    await lose[kind]!.back();
    await redisIs(proxy, 1);
  });

  test.each(kinds)('is used by the instances again after it was %s', async (kind) => {
    const [one, other] = await Promise.all([start(), start()]);
    await lose[kind]!.away();
    await Promise.all([redisIs(one, 0), redisIs(other, 0)]);
    await lose[kind]!.back();
    await Promise.all([redisIs(one, 1), redisIs(other, 1)]);
    await one.ask(PATH);
    await expect
      .poll(async () => (await other.ask(`${PATH}?type=URL`)).headers['cache-status'])
      .toContain('hit');
    demo.remove(HANDLE);
    await one.ask(`${PATH}?auth=true`);
    await expect.poll(async () => (await other.ask(PATH)).status).toBe(404);
  });

  test.each(kinds)('does not prevent a proxy from starting when it is %s', async (kind) => {
    await lose[kind]!.away();
    const proxy = await startSeparated({ redisUrl: redis.url, upstreamUrl: demo.url });
    const stalledMs = startStallClock();
    const startedAt = performance.now();
    expect((await proxy.ask(PATH)).status).toBe(200);
    expect(performance.now() - startedAt - stalledMs(), 'whoever waited for Redis').toBeLessThan(
      PATIENT_MS / 2,
    );
    // Redis counts as down after several failed attempts to join the other instances.
    await expect
      .poll(async () => (await proxy.ask(PATH)).headers['cache-status'], { timeout: 60_000 })
      .toContain('hit');
    await lose[kind]!.back();
    await redisIs(proxy, 1);
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  test('limits the serving of entries from memory to redis.disconnectedMaxAge', async () => {
    const proxy = await start({ REDIS_DISCONNECTED_MAX_AGE: '5s' });
    await load(proxy);
    await redis.stop();
    await redisIs(proxy, 0);
    proxy.pass(5000);
    await proxy.ask(PATH);
    expect(demo.asked).toBe(1);
    demo.put(HANDLE, recordOf('second'));
    proxy.pass(1);
    // The record is reloaded only after the lease has ended.
    await expect.poll(async () => (await proxy.ask(PATH)).text).toContain('/second');
    expect(demo.asked).toBe(2);
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    expect(demo.asked).toBe(2);
  });

  test('leaves stale records available when the upstream also fails', async () => {
    const proxy = await start({ REDIS_DISCONNECTED_MAX_AGE: '5s' });
    await load(proxy);
    await redis.stop();
    await redisIs(proxy, 0);
    demo.fail('refuse');
    onTestFinished(() => {
      demo.heal();
    });
    proxy.pass(6000);
    await expect
      .poll(async () => {
        const { status, headers } = await proxy.ask(PATH);
        expect(status).toBe(200);
        return headers['cache-status'];
      })
      .toContain('detail=error');
  });

  test('makes entries in memory stale when it returns after a stop, because it may have lost later changes', async () => {
    const proxy = await start();
    await load(proxy);
    await redis.stop();
    await redisIs(proxy, 0);
    demo.put(HANDLE, recordOf('second'));
    await redis.restart();
    // Without a lease the instance may serve the record for redis.disconnectedMaxAge.
    await expect.poll(async () => (await proxy.ask(PATH)).text).toContain('/second');
    expect(demo.asked).toBe(2);
  });

  test('causes no loads when it resumes after a freeze', async () => {
    const proxy = await start();
    await load(proxy);
    redis.freeze();
    await redisIs(proxy, 0);
    redis.thaw();
    await redisIs(proxy, 1);
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    expect(demo.asked).toBe(1);
  });

  test('does not restore a record that an authoritative read found deleted during a freeze', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    await load(one);
    await other.ask(PATH);
    redis.freeze();
    await Promise.all([redisIs(one, 0), redisIs(other, 0)]);
    demo.remove(HANDLE);
    expect((await one.ask(`${PATH}?auth=true`)).status).toBe(404);
    redis.thaw();
    await Promise.all([redisIs(one, 1), redisIs(other, 1)]);
    expect((await one.ask(PATH)).status).toBe(404);
    expect((await other.ask(PATH)).status).toBe(404);
    expect((await (await start()).ask(PATH)).status).toBe(404);
  });
});
