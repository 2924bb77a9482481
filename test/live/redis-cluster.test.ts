// A real Redis Cluster of three masters: the guarantees equal those of a single Redis.
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { GROUPS } from '../../src/cache/coherence/groups.js';
import { RUN_LENGTH } from '../../src/cache/entry.js';
import { openRedis } from '../../src/cache/redis/connections.js';
import { infoField } from '../../src/cache/redis/errors.js';
import { stateName } from '../../src/cache/redis/namespace.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.js';
import { LITTLE_PATIENCE, PATIENT_MS, describeWithRedis } from '../support/redis-server.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const handles = Array.from({ length: 30 }, (_, at) => `21.T11998/cluster-${at}`);
const pathOf = (handle: string): string => `/api/handles/${handle}`;

describeWithRedis('proxies on a Redis Cluster', () => {
  let cluster: RedisCluster;
  let run = 0;
  beforeAll(async () => {
    cluster = await startRedisCluster(3);
  });
  afterAll(() => cluster.stop());
  beforeEach(() => {
    run++;
    for (const handle of handles) demo.put(handle, numbered(0));
    demo.reset();
  });

  const start = (env: Record<string, string> = {}): Promise<Proxy> =>
    startSharing({
      upstreamUrl: demo.url,
      env: { REDIS_CLUSTER: cluster.nodes, REDIS_KEY_PREFIX: `run-${run}:`, ...env },
    });
  const readAll = (proxy: Proxy) => Promise.all(handles.map((handle) => proxy.ask(pathOf(handle))));
  const stored = () => cluster.keys(`run-${run}:*:entry:*`);
  /** Loads the handles repeatedly until all are stored, because a load that stalls is not stored. */
  const storeAll = (proxy: Proxy): Promise<void> =>
    expect
      .poll(async () => {
        await Promise.all(handles.map((handle) => proxy.ask(`${pathOf(handle)}?auth=true`)));
        return stored();
      })
      .toHaveLength(handles.length);

  test('share their entries, which are spread over all three masters', async () => {
    const [one, other] = [await start(), await start()];
    await storeAll(one);
    const { asked } = demo;
    expect(new Set((await stored()).map(({ node }) => node))).toEqual(new Set([0, 1, 2]));
    const shared = await readAll(other);
    expect(shared.map(({ headers }) => headers['cache-status'])).toEqual(
      handles.map(() => expect.stringContaining('detail=redis') as string),
    );
    expect(demo.asked).toBe(asked);
  });

  test('keep all entries and the state of a group on one node', async () => {
    const one = await start();
    for (const handle of handles) await putNumbered(one.url, pathOf(handle), 1);
    await storeAll(one);
    const places = new Map<string, Set<number>>();
    for (const { key, node } of await cluster.keys(`run-${run}:{*`)) {
      const name = key.slice(key.indexOf('{'), key.indexOf('}'));
      places.set(name, (places.get(name) ?? new Set()).add(node));
    }
    expect(places.size).toBe(GROUPS + 1);
    expect([...places.values()].every((nodes) => nodes.size === 1)).toBe(true);
  });

  test('mark the bans and the member list with the process of their master, as version 0.3 does', async () => {
    await start();
    const marks = {
      [stateName(`run-${run}:`, 'bans')]: async (client: Redis, key: string) => [
        await client.hget(key, 'run'),
      ],
      [`run-${run}:members`]: (client: Redis, key: string) => client.zrange(key, 0, '-1'),
    };
    for (const [key, readMarks] of Object.entries(marks)) {
      const [place] = await cluster.keys(key);
      const client = new Redis(cluster.servers[place!.node]!.url);
      onTestFinished(() => {
        client.disconnect();
      });
      const process = infoField(await client.info(), 'run_id')!.slice(0, RUN_LENGTH);
      expect((await readMarks(client, key)).join(), key).toContain(process);
    }
  });

  test('return an acknowledged write on every instance, whichever node stores the entry', async () => {
    const proxies = [await start(), await start(), await start()];
    for (const proxy of proxies) await readAll(proxy);
    for (const [at, handle] of handles.entries()) {
      expect((await putNumbered(proxies[at % 3]!.url, pathOf(handle), 7)).status).toBe(200);
    }
    for (const proxy of proxies) {
      expect((await readAll(proxy)).map(numberIn)).toEqual(handles.map(() => 7));
    }
  });

  test('have received a write by the time it is acknowledged, although they subscribe to different nodes', async () => {
    const [one, other] = [await start(), await start()];
    await readAll(other);
    await readAll(other);
    for (const handle of handles) {
      demo.reset();
      await putNumbered(one.url, pathOf(handle), 3);
      expect(numberIn(await other.ask(pathOf(handle)))).toBe(3);
    }
  });

  test('serve every reader while a master is down, and share entries again after its recovery', async () => {
    const [one, other] = [await start(LITTLE_PATIENCE), await start(LITTLE_PATIENCE)];
    await readAll(one);
    await readAll(other);
    await cluster.servers[1]!.stop();
    await Promise.all([redisIs(one, 0), redisIs(other, 0)]);
    for (const proxy of [one, other]) {
      expect((await readAll(proxy)).map(({ status }) => status)).toEqual(handles.map(() => 200));
    }
    for (const handle of handles) {
      expect((await putNumbered(one.url, pathOf(handle), 9)).status).toBe(200);
    }
    expect((await readAll(one)).map(numberIn)).toEqual(handles.map(() => 9));
    await cluster.servers[1]!.restart();
    await cluster.isWell();
    await Promise.all([redisIs(one, 1), redisIs(other, 1)]);
    expect((await readAll(other)).map(numberIn), 'what was written meanwhile').toEqual(handles.map(() => 9));
    expect((await readAll(await start())).map(numberIn)).toEqual(handles.map(() => 9));
  });

  test('preserve the command order while a node connects', async () => {
    const { commands, clientOf } = openRedis({
      cluster: cluster.nodes.split(',').map((node) => `redis://${node}`),
      commandTimeoutMs: PATIENT_MS,
    });
    onTestFinished(() => {
      commands.disconnect();
    });
    await once(commands, 'ready');
    const key = `run-${run}:order`;
    for (let round = 0; round < 10; round++) {
      await expect.poll(() => commands.set(key, 'first').catch(() => undefined)).toBe('OK');
      const node = clientOf(key)!;
      node.disconnect();
      await once(node, 'end');
      const sets = ['second', 'third', 'last'].map((value) => commands.set(key, value));
      const [, , last] = await Promise.allSettled(sets);
      const found = (): Promise<string | null | undefined> => commands.get(key).catch(() => undefined);
      await expect.poll(found).toEqual(expect.stringMatching(last?.status === 'fulfilled' ? /^last$/ : /./));
    }
  });
});
