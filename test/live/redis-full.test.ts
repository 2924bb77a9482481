// A Redis that refuses commands: without eviction it stores no new entries, and instances serve no outdated entries; a replica is lost.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { LOCK, RENEW_LOCK } from '../../src/write/redis-lock.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { openInstance } from '../support/instances.js';
import { lockOfInstance, testKeyLock } from '../support/lock-contract.js';
import type { Proxy } from '../support/proxy.js';
import { PATIENT_MS, type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { metric, startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/full';
const PATH = `/api/handles/${HANDLE}`;

describeWithRedis('full Redis', () => {
  let redis: RedisServer;
  let client: Redis;
  beforeAll(async () => {
    redis = await startRedis(['--maxmemory-policy', 'noeviction']);
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });
  beforeEach(async () => {
    await client.config('SET', 'maxmemory', '0');
    await client.flushall();
    demo.put(HANDLE, numbered(0));
    demo.reset();
  });

  const start = (): Promise<Proxy> => startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });
  const isStored = () => expect.poll(() => client.keys('*:entry:*')).toHaveLength(1);
  /** Makes Redis reject all commands that need memory. */
  const fill = async (): Promise<void> => {
    await client.config('SET', 'maxmemory', '1');
    await expect(client.set('more', 'more')).rejects.toThrow('OOM');
  };

  test('serves its entries, while new entries stay in memory', async () => {
    const one = await start();
    await one.ask(PATH);
    await isStored();
    await fill();
    const other = await start();
    expect((await other.ask(PATH)).headers['cache-status']).toContain('detail=redis');
    demo.put('21.T11998/new', numbered(1));
    demo.reset();
    for (let count = 0; count < 3; count++) {
      expect((await other.ask('/api/handles/21.T11998/new')).status).toBe(200);
    }
    expect(demo.asked).toBe(1);
    expect(await metric(other, 'handle_proxy_redis_up')).toBe(1);
  });

  test('publishes writes, and every instance receives them', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    await one.ask(PATH);
    await isStored();
    await other.ask(PATH);
    await fill();
    for (const count of [1, 2, 3]) {
      expect((await putNumbered(one.url, PATH, count)).status).toBe(200);
      await expect.poll(async () => numberIn(await other.ask(PATH))).toBe(count);
      expect(numberIn(await one.ask(PATH))).toBe(count);
      expect(numberIn(await (await start()).ask(PATH))).toBe(count);
    }
    expect(await metric(one, 'handle_proxy_redis_up')).toBe(1);
  });

  test.each([
    { refuse: fill, allow: () => client.config('SET', 'maxmemory', '0'), reason: /^OOM command not allowed/ },
    {
      refuse: () => client.call('ACL', 'SETUSER', 'default', '-INCR'),
      allow: () => client.call('ACL', 'SETUSER', 'default', '+INCR'),
      reason: /^NOPERM .*(?:command|subcommand)$/,
    },
  ])(
    'stays in use when it refuses a command, and the reason is reported without the digest of a script ($reason)',
    async ({ refuse, allow, reason }) => {
      const troubles: string[] = [];
      const commands = new RedisCommands({
        url: redis.url,
        keyPrefix: 't:',
        commandTimeoutMs: PATIENT_MS,
        onTrouble: (text) => troubles.push(text),
      });
      onTestFinished(() => commands.close());
      await expect.poll(() => commands.isUp()).toBe(true);
      await refuse();
      onTestFinished(async () => {
        await allow();
      });
      const increment = (name: string) => `redis.call('INCR', '${name}')`;
      expect(await commands.run('count', (client) => client.incr('t:a'))).toBeUndefined();
      for (const source of [increment('t:a'), `\n${increment('t:b')}`])
        expect(await commands.run('count', () => commands.script(source, [], []))).toBeUndefined();
      expect(commands.isUp()).toBe(true);
      expect([1, 2]).toContain(troubles.length);
      for (const text of troubles) expect(text).toMatch(reason);
    },
  );

  test.each(['PUBLISH', 'HSET', 'SETRANGE'])(
    'ends the leases of all instances while their user may not run %s, which announces writes',
    async (command) => {
      const instances = [0, 1].map(() => openInstance({ url: redis.url, clock: systemClock }));
      onTestFinished(async () => {
        await client.call('ACL', 'SETUSER', 'default', '+@all');
        await Promise.all(instances.map(({ close }) => close()));
      });
      const linked = () => expect.poll(() => instances.map(({ hub }) => hub.isLinked()), { timeout: 30_000 });
      await linked().toEqual([true, true]);
      await client.call('ACL', 'SETUSER', 'default', `-${command}`);
      await linked().toEqual([false, false]);
      await client.call('ACL', 'SETUSER', 'default', `+${command}`);
      await linked().toEqual([true, true]);
    },
  );

  test('renews a lock', async () => {
    await client.eval(LOCK, 3, 't:{KEY}:lock', 't:{KEY}:wanted', 't:{KEY}:held', 'token', 60_000, 'instance');
    await fill();
    expect(await client.eval(RENEW_LOCK, 1, 't:{KEY}:lock', 'token', 60_000)).toBe(1);
  });

  testKeyLock(async (waitMs) => {
    await fill();
    return [await lockOfInstance(redis.url, waitMs), await lockOfInstance(redis.url, waitMs)];
  });
});

describeWithRedis('Redis that becomes a replica', () => {
  let redis: RedisServer;
  let client: Redis;
  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });

  test('is lost once, and used again when it is a master', async () => {
    const states: boolean[] = [];
    const failures: string[] = [];
    const commands = new RedisCommands({
      url: redis.url,
      keyPrefix: 't:',
      commandTimeoutMs: PATIENT_MS,
      onState: (isUp) => states.push(isUp),
      onError: (command) => failures.push(command),
    });
    onTestFinished(() => commands.close());
    await expect.poll(() => states).toEqual([true]);
    // Nothing listens there.
    await client.call('REPLICAOF', '127.0.0.1', '1');
    expect(await commands.run('count', (redis) => redis.incr('t:a'))).toBeUndefined();
    await expect.poll(() => failures.filter((command) => command === 'heartbeat').length).toBeGreaterThan(4);
    expect(states).toEqual([true, false]);
    await client.call('REPLICAOF', 'NO', 'ONE');
    await expect.poll(() => states).toEqual([true, false, true]);
  });
});

describeWithRedis('evicting Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test.each(['volatile-lru', 'volatile-lfu', 'volatile-random', 'volatile-ttl'])(
    'grants a lock to a single instance when it is full of keys without a TTL (%s)',
    async (policy) => {
      const client = new Redis(redis.url);
      onTestFinished(async () => {
        await client.config('SET', 'maxmemory', '0');
        await client.flushall();
        client.disconnect();
      });
      await client.config('SET', 'maxmemory', '0', 'maxmemory-policy', policy);
      const [one, other] = [
        await lockOfInstance(redis.url, PATIENT_MS),
        await lockOfInstance(redis.url, 200),
      ];
      await one('KEY', async () => {
        await client.set('more', 'more', 'PX', 60_000);
        await client.config('SET', 'maxmemory', '1');
        await expect.poll(() => client.exists('more')).toBe(0);
        await expect(other('KEY', () => Promise.resolve())).rejects.toMatchObject({
          code: 'CONCURRENT_MODIFICATION',
        });
      });
      await one('KEY', () => Promise.resolve());
    },
  );

  test.each([
    { policy: 'allkeys-lru', maxmemory: '100mb', warned: ['allkeys-lru'] },
    { policy: 'allkeys-lru', maxmemory: '0', warned: [] },
    { policy: 'volatile-ttl', maxmemory: '100mb', warned: [] },
    { policy: 'volatile-lru', maxmemory: '100mb', warned: [] },
    { policy: 'noeviction', maxmemory: '100mb', warned: [] },
  ])(
    'triggers a single warning, and only when it may evict more than old entries ($policy, maxmemory $maxmemory)',
    async ({ policy, maxmemory, warned }) => {
      const client = new Redis(redis.url);
      onTestFinished(() => {
        client.disconnect();
      });
      await client.config('SET', 'maxmemory', maxmemory, 'maxmemory-policy', policy);
      const policies: string[] = [];
      const commands = new RedisCommands({
        url: redis.url,
        keyPrefix: 't:',
        commandTimeoutMs: PATIENT_MS,
        onEvictionPolicy: (policy) => policies.push(policy),
      });
      onTestFinished(() => commands.close());
      const isUp = () => expect.poll(() => commands.isUp());
      await isUp().toBe(true);
      commands.redis.disconnect(true);
      await isUp().toBe(false);
      await isUp().toBe(true);
      expect(policies).toEqual(warned);
    },
  );
});
