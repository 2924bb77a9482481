// The cost of a short Redis outage: few loads, because entries become fresh again group by group.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';

/** `HOT_HANDLES=10000` reproduces the figures in src/cache/coherence/README.md. */
const COUNT = Number(process.env['HOT_HANDLES'] ?? '1000');
const AT_A_TIME = 50;
const handles = Array.from({ length: COUNT }, (_, at) => `21.T11998/hot-${at}`);
const pathOf = (handle: string): string => `/api/handles/${handle}`;
const WRITTEN = handles[7]!;

const demo = await startDemoServer();

async function readAll(proxy: Proxy): Promise<void> {
  for (let at = 0; at < COUNT; at += AT_A_TIME) {
    await Promise.all(handles.slice(at, at + AT_A_TIME).map((handle) => proxy.ask(pathOf(handle))));
  }
}

describeWithRedis('loss of all Redis connections', () => {
  let redis: RedisServer;
  let killer: Redis;
  beforeAll(async () => {
    redis = await startRedis();
    killer = new Redis(redis.url);
  });
  afterAll(async () => {
    killer.disconnect();
    await redis.stop();
  });

  test('causes a reload of at most 1% of handles, and hides no write made during the outage', async () => {
    for (const handle of handles) demo.put(handle, numbered(1));
    const start = (): Promise<Proxy> => startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });
    const [writer, reader] = await Promise.all([start(), start()]);
    await readAll(reader);
    demo.reset();
    const kill = (): Promise<unknown> =>
      Promise.all(
        ['normal', 'pubsub'].map((type) => killer.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes')),
      );
    await kill();
    const written = putNumbered(writer.url, pathOf(WRITTEN), 2);
    for (let times = 0; times < 20; times++) {
      await kill();
      await reader.ask(pathOf(handles[times]!));
    }
    expect((await written).status).toBe(200);
    await Promise.all([redisIs(writer, 1), redisIs(reader, 1)]);
    await readAll(reader);
    expect(numberIn(await reader.ask(pathOf(WRITTEN)))).toBe(2);
    process.stdout.write(`| ${COUNT} hot handles, connections lost | asked for again: ${demo.asked} |\n`);
    expect(demo.asked).toBeLessThanOrEqual(1 + COUNT / 100);
  });
});
