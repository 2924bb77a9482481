// Faults of a real Redis and of the connections to it: no old record is served after an acknowledged write.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { LEASE_WAIT_MS } from '../../src/cache/coherence/lease.js';
import { startConnectedProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { startRedisCluster } from '../support/redis-cluster.js';
import { startGuardedRedis } from '../support/redis-sentinel.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { redisIs, startSeparated, startSharing } from '../support/sharing-proxies.js';
import { startSlowLine } from '../support/slow-line.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/fault';
const PATH = `/api/handles/${HANDLE}`;
/** Message delay on a slow connection, shorter than a lease. */
const LATE_MS = 600;

beforeEach(() => {
  demo.put(HANDLE, numbered(1));
  demo.reset();
});

async function startOwnRedis(extra: string[] = []): Promise<RedisServer> {
  const redis = await startRedis(extra);
  onTestFinished(() => {
    redis.thaw();
    return redis.stop();
  });
  return redis;
}

describeWithRedis('Redis that loses data', () => {
  async function startWithDump(): Promise<{ redis: RedisServer; save: () => Promise<void> }> {
    const folder = await mkdtemp(join(tmpdir(), 'redis-dump-'));
    const redis = await startOwnRedis(['--dir', folder]);
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const save = async (): Promise<void> => {
      const client = new Redis(redis.url);
      await client.save();
      client.disconnect();
    };
    return { redis, save };
  }

  test('starts from an old dump, whose entries neither running nor new instances serve', async () => {
    const { redis, save } = await startWithDump();
    const start = (): Promise<Proxy> => startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });
    const [one, other] = await Promise.all([start(), start()]);
    for (const proxy of [one, other]) expect(numberIn(await proxy.ask(PATH))).toBe(1);
    await save();
    expect((await putNumbered(one.url, PATH, 2)).status).toBe(200);
    await redis.restart();
    const late = await start();
    await Promise.all([redisIs(one, 1), redisIs(other, 1)]);
    for (const proxy of [late, one, other]) expect(numberIn(await proxy.ask(PATH))).toBe(2);
  });

  test('leaves a written record invalidated on every instance when the master and the writer are lost', async () => {
    const guarded = await startGuardedRedis();
    onTestFinished(() => guarded.stop());
    await guarded.isSafe();
    const env = { REDIS_SENTINELS: guarded.sentinels };
    const writer = await startConnectedProxy({ UPSTREAM_URL: demo.url, ...env });
    const reader = await startSharing({ upstreamUrl: demo.url, env });
    expect(numberIn(await reader.ask(PATH))).toBe(1);
    const before = await guarded.master();
    const replica = guarded.servers.find((server) => server !== before)!;
    // Detaches the replica, so that it does not receive later changes.
    const client = new Redis(replica.url);
    await client.call('REPLICAOF', 'NO', 'ONE');
    client.disconnect();
    expect((await putNumbered(writer.url, PATH, 2)).status).toBe(200);
    await writer.stop('SIGKILL');
    await before.stop();
    await guarded.hasFollowed(before);
    await redisIs(reader, 1);
    expect(numberIn(await reader.ask(PATH))).toBe(2);
    const late = await startSharing({ upstreamUrl: demo.url, env });
    expect(numberIn(await late.ask(PATH))).toBe(2);
  });

  test('delays a write after FLUSHALL until the leases of the forgotten members have ended', async () => {
    const redis = await startOwnRedis();
    const reader = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });
    const writer = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });
    expect(numberIn(await reader.ask(PATH))).toBe(1);
    const client = new Redis(redis.url);
    // FLUSHALL deletes the list of members.
    const startedAt = performance.now();
    await client.flushall();
    client.disconnect();
    expect((await putNumbered(writer.url, PATH, 2)).status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThan(LEASE_WAIT_MS / 2);
    expect(numberIn(await reader.ask(PATH))).toBe(2);
  });
});

describeWithRedis('slow Redis connection', () => {
  /** Starts a reader that has cached the record. `slowDown` delays its Redis connection. */
  async function startSlowReader(redis: RedisServer): Promise<{ reader: Proxy; slowDown: () => void }> {
    const line = await startSlowLine(redis.port, 0);
    const reader = await startSharing({
      redisUrl: `redis://127.0.0.1:${line.port}`,
      upstreamUrl: demo.url,
      env: { REDIS_KEY_PREFIX: 'slow:' },
    });
    expect(numberIn(await reader.ask(PATH))).toBe(1);
    return {
      reader,
      slowDown: () => {
        line.delayMs = LATE_MS;
      },
    };
  }
  const env = { REDIS_KEY_PREFIX: 'slow:' };

  test('delays the first write of a new instance until the reader has received the invalidation', async () => {
    const redis = await startOwnRedis();
    const { reader, slowDown } = await startSlowReader(redis);
    slowDown();
    const writer = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env });
    expect((await putNumbered(writer.url, PATH, 2)).status).toBe(200);
    expect(numberIn(await reader.ask(PATH))).toBe(2);
  });

  test('delays an auth=true read of a changed record until the reader has received the invalidation', async () => {
    const redis = await startOwnRedis();
    const { reader, slowDown } = await startSlowReader(redis);
    const asking = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env });
    slowDown();
    demo.put(HANDLE, numbered(2));
    expect(numberIn(await asking.ask(`${PATH}?auth=true`))).toBe(2);
    expect(numberIn(await reader.ask(PATH))).toBe(2);
  });

  test('delays a write until the reader has received the invalidation, even when the writer has lost Redis', async () => {
    const redis = await startOwnRedis();
    const { reader, slowDown } = await startSlowReader(redis);
    const line = await startSlowLine(redis.port, 0);
    const writer = await startSharing({
      redisUrl: `redis://127.0.0.1:${line.port}`,
      upstreamUrl: demo.url,
      env,
    });
    slowDown();
    const client = new Redis(redis.url);
    const told = new Promise((resolve) =>
      client.on('message', (_channel, text: string) => {
        if (text.includes(' changed ')) resolve(undefined);
      }),
    );
    await client.subscribe('slow:0:messages');
    const written = putNumbered(writer.url, PATH, 2);
    await told;
    client.disconnect();
    line.delayMs = 60_000;
    expect((await written).status).toBe(200);
    expect(numberIn(await reader.ask(PATH))).toBe(2);
  });
});

describeWithRedis('starting instance', () => {
  test('waits for members with pending invalidations while Redis is frozen', async () => {
    const redis = await startOwnRedis();
    const writer = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });
    expect(numberIn(await writer.ask(PATH))).toBe(1);
    redis.freeze();
    expect((await putNumbered(writer.url, PATH, 2)).status).toBe(200);
    const late = await startSeparated({ redisUrl: redis.url, upstreamUrl: demo.url });
    redis.thaw();
    await redisIs(late, 1);
    expect(numberIn(await late.ask(PATH))).toBe(2);
  });
});

describeWithRedis('Redis Cluster', () => {
  test('delivers every message while its cluster bus is cut repeatedly', async () => {
    const cluster = await startRedisCluster(3, ['--enable-debug-command', 'yes']);
    onTestFinished(() => cluster.stop());
    const env = { REDIS_CLUSTER: cluster.nodes };
    const start = (): Promise<Proxy> => startSharing({ upstreamUrl: demo.url, env });
    const [one, other] = await Promise.all([start(), start()]);
    const clients = cluster.servers.map(({ url }) => new Redis(url));
    onTestFinished(() => {
      for (const client of clients) client.disconnect();
    });
    const ids = await Promise.all(clients.map((client) => client.cluster('MYID')));
    const linksOf = (client: Redis): Promise<unknown> => client.cluster('LINKS');
    const cutBus = async (): Promise<void> => {
      // Waits for all links, because Redis 7.0 crashes when a missing link is cut.
      for (const client of clients) await expect.poll(() => linksOf(client)).toHaveLength(4);
      await Promise.all(
        clients.map((client, at) =>
          client.call('DEBUG', 'CLUSTERLINK', 'KILL', 'TO', ids[(at + 1) % ids.length] ?? ''),
        ),
      );
    };
    for (let count = 2; count < 12; count++) {
      await other.ask(PATH);
      await cutBus();
      expect((await putNumbered(one.url, PATH, count)).status).toBe(200);
      expect(numberIn(await other.ask(PATH))).toBe(count);
    }
  });
});
