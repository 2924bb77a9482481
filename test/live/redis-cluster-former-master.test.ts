// A former master of a Redis Cluster is promoted again before it has received what its successor stored.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { systemClock } from '../../src/clock.js';
import { type AcquireRedisLock, createRedisLock } from '../../src/write/redis-lock.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.js';
import { PATIENT_MS, type RedisServer, describeWithRedis } from '../support/redis-server.js';
import { startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const handles = Array.from({ length: 30 }, (_, at) => `21.T11998/former-${at}`);
const pathOf = (handle: string): string => `/api/handles/${handle}`;

/** Seconds after which a former master may return at the earliest (src/cache/coherence/README.md). */
const RETURN_SECONDS = 3;
const PATIENT = { timeout: 60_000 };

function connect({ url }: RedisServer): Redis {
  const client = new Redis(url).on('error', () => undefined);
  onTestFinished(() => {
    client.disconnect();
  });
  return client;
}

const promote = (client: Redis): Promise<unknown> => client.call('CLUSTER', 'FAILOVER', 'TAKEOVER');
const infoOf = (client: Redis): Promise<string> => client.info();
const uptimeOf = async (client: Redis): Promise<number> =>
  Number(/^uptime_in_seconds:(\d+)/m.exec(await infoOf(client))?.[1]);

describeWithRedis('proxies on a Redis Cluster whose former master returns without a sync', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster(3);
  });
  afterAll(() => cluster.stop());

  const start = (): Promise<Proxy> =>
    startSharing({ upstreamUrl: demo.url, env: { REDIS_CLUSTER: cluster.nodes, REDIS_KEY_PREFIX: 'f:' } });

  /** Returns a master that has neither bans nor members. */
  async function plainMaster(): Promise<number> {
    const taken = [...(await cluster.keys('f:{bans}*')), ...(await cluster.keys('f:members'))];
    return [0, 1, 2].find((node) => taken.every((key) => key.node !== node))!;
  }

  /** Promotes a replica of the master. Returns a function that promotes the master again, without a sync. */
  async function replace(at: number): Promise<() => Promise<void>> {
    const [former, successor] = [connect(cluster.servers[at]!), connect(await cluster.addReplica(at))];
    // The former master keeps its records when it becomes a replica.
    await successor.call('ACL', 'SETUSER', 'default', '-psync', '-sync');
    await promote(successor);
    await expect.poll(() => infoOf(former), PATIENT).toContain('role:slave');
    return async () => {
      const returnsAt = (await uptimeOf(former)) + RETURN_SECONDS;
      await expect.poll(() => uptimeOf(former), PATIENT).toBeGreaterThan(returnsAt);
      await promote(former);
      await expect.poll(() => infoOf(successor), PATIENT).toContain('role:slave');
    };
  }

  /** Stores entries on a master, and returns their handles. */
  async function storeEntries(proxy: Proxy, at: number): Promise<string[]> {
    for (const handle of handles) await proxy.ask(pathOf(handle));
    const storedNow = async (): Promise<string[]> => {
      const keys = (await cluster.keys('f:*:entry:*')).filter(({ node }) => node === at);
      return handles.filter((handle) => keys.some(({ key }) => key.endsWith(handle.toUpperCase())));
    };
    await expect.poll(storedNow).not.toEqual([]);
    return storedNow();
  }

  test(
    'return an acknowledged write, on every instance',
    async () => {
      for (const handle of handles) demo.put(handle, numbered(1));
      const [one, other] = [await start(), await start()];
      const at = await plainMaster();
      const stored = await storeEntries(one, at);
      const giveBack = await replace(at);
      for (const handle of stored) {
        const write = async (): Promise<number> => (await putNumbered(one.url, pathOf(handle), 2)).status;
        await expect.poll(write, PATIENT).toBe(200);
      }
      await giveBack();
      for (const proxy of [await start(), one, other]) {
        const read = await Promise.all(stored.map((handle) => proxy.ask(pathOf(handle))));
        expect(read.map(numberIn)).toEqual(stored.map(() => 2));
      }
    },
    60 * PATIENT_MS,
  );

  test(
    'count a lock as free only since then, because the other master may have granted it',
    async () => {
      const startInstance = async (): Promise<AcquireRedisLock> => {
        const addresses = cluster.nodes.split(',').map((node) => `redis://${node}`);
        const options = { cluster: addresses, keyPrefix: 'f:', commandTimeoutMs: PATIENT_MS };
        const redis = new RedisCommands(options);
        onTestFinished(() => redis.close());
        await expect.poll(() => redis.isUp(), PATIENT).toBe(true);
        // The era is that of the master of the bans, which stays.
        const era = () => ({ name: 'era', since: -Infinity });
        return createRedisLock({ redis, era, waitMs: 60_000, writeMs: 60_000, clock: systemClock });
      };
      const [one, other] = [await startInstance(), await startInstance()];
      const use = async (acquire: AcquireRedisLock): Promise<number> => {
        const lock = (await acquire('LOCK', Infinity))!;
        await lock.release();
        return lock.freeSince;
      };
      await use(one);
      const [trace] = await cluster.keys('f:{LOCK}:held');
      const giveBack = await replace(trace!.node);
      await use(one);
      const releasedAt = performance.now();
      await giveBack();
      expect(await use(other)).toBeGreaterThan(releasedAt);
    },
    60 * PATIENT_MS,
  );
});
