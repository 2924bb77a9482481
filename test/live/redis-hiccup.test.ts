// A Redis that pauses briefly: a write waits until all instances have received its invalidation.
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { LEASE_WAIT_MS, MEMBERSHIP_MS } from '../../src/cache/coherence/lease.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { LITTLE_PATIENCE, type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/hiccup';
const PATH = `/api/handles/${HANDLE}`;

describeWithRedis('briefly paused Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  const start = (): Promise<Proxy> =>
    startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env: LITTLE_PATIENCE });

  test('leaves stale entries available when the Handle server also fails', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    expect((await putNumbered(one.url, PATH, 1)).status).toBe(201);
    for (const proxy of [one, other]) expect(numberIn(await proxy.ask(PATH))).toBe(1);
    onTestFinished(() => {
      redis.thaw();
      demo.heal();
    });
    redis.freeze();
    await Promise.all([redisIs(one, 0), redisIs(other, 0)]);
    demo.fail('error');
    redis.thaw();
    await Promise.all([redisIs(one, 1), redisIs(other, 1)]);
    for (const proxy of [one, other]) expect(numberIn(await proxy.ask(PATH))).toBe(1);
  });

  test('delays a write until Redis resumes and every instance has received the invalidation', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    demo.reset();
    demo.put(HANDLE, numbered(1));
    expect(numberIn(await other.ask(PATH))).toBe(1);
    const before = demo.askedFor(HANDLE);
    onTestFinished(() => {
      redis.thaw();
    });
    redis.freeze();
    const frozenAt = performance.now();
    const written = putNumbered(one.url, PATH, 2).then(({ status }) => ({ status, at: performance.now() }));
    await redisIs(one, 0);
    await expect.poll(() => demo.askedFor(HANDLE)).toBe(before + 1);
    const thawedAt = performance.now();
    redis.thaw();
    const { status, at } = await written;
    expect(status).toBe(200);
    expect(at > thawedAt || at > frozenAt + MEMBERSHIP_MS + LEASE_WAIT_MS).toBe(true);
    expect(numberIn(await other.ask(PATH))).toBe(2);
  });
});
