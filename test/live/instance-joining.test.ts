// An instance that serves requests before it has joined: writers do not wait for it yet.
import '../support/real-sockets.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { startSeparated, startSharing } from '../support/sharing-proxies.js';
import { startSlowLine } from '../support/slow-line.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/starting';
const PATH = `/api/handles/${HANDLE}`;

describeWithRedis('slowly joining instance', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test('serves the new version of a cached record after a different instance has written it', async () => {
    demo.put(HANDLE, numbered(1));
    const writer = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });
    const { port } = await startSlowLine(redis.port, 300);
    const starting = await startSeparated({ redisUrl: `redis://127.0.0.1:${port}`, upstreamUrl: demo.url });
    expect(numberIn(await starting.ask(PATH))).toBe(1);
    expect((await putNumbered(writer.url, PATH, 2)).status).toBe(200);
    expect(numberIn(await starting.ask(PATH))).toBe(2);
  });
});
