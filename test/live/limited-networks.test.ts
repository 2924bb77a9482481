// Limited networks in a real Redis: which limit counts, when it ends, and what is left of it.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { systemClock } from '../../src/clock.js';
import { LimitedNetworks } from '../../src/plugins/traffic/limited-networks.js';
import { testContext } from '../support/context.js';
import { PATIENT_MS, type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

const NETWORK = '198.51.100.0/24';
const OTHER = '203.0.113.0/24';
const LONGEST_MS = 600_000;
const KEY = 't:limited';

describeWithRedis('limited networks in Redis', () => {
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
  beforeEach(async () => {
    await client.flushall();
  });

  /** Starts the limits of an instance, on a clock that starts at 0. */
  async function instance() {
    const commands = new RedisCommands({ url: redis.url, keyPrefix: 't:', commandTimeoutMs: PATIENT_MS });
    onTestFinished(() => commands.close());
    await expect.poll(() => commands.isUp()).toBe(true);
    const clock = { now: 0 };
    const context = testContext({ clock: { ...systemClock, wall: () => clock.now, now: () => clock.now } });
    const networks = new LimitedNetworks(context, commands);
    const names = (): string[] => networks.limits().map(({ network }) => network);
    return {
      clock,
      networks,
      names,
      lines: context.lines,
      refresh: () => networks.refreshFromRedis(LONGEST_MS),
      /** Limits the network, and waits until Redis has stored it. */
      async limit(network: string, forMs = LONGEST_MS) {
        networks.limit({ network, until: clock.now + forMs, reason: 'unknown-names' });
        await expect.poll(() => client.zscore(KEY, `unknown-names ${network}`)).not.toBe(null);
      },
    };
  }

  const redisTime = async (): Promise<number> => Number((await client.time())[0]) * 1000;

  test('a limit that another instance has set is ended also by an instance that has not heard of it', async () => {
    const [one, other] = [await instance(), await instance()];
    await one.limit(NETWORK);
    expect(other.names()).toEqual([]);
    expect(await other.networks.lift(NETWORK)).toBe(true);
    expect(await other.networks.lift(NETWORK)).toBe(false);
    await one.refresh();
    expect(one.names()).toEqual([]);
  });

  test('a limit that Redis has not stored stays, while others are read from there', async () => {
    const [one, other] = [await instance(), await instance()];
    await client.set(KEY, 'a text, to which no limit can be added');
    one.networks.limit({ network: NETWORK, until: LONGEST_MS, reason: 'unknown-names' });
    await expect.poll(() => client.info('errorstats')).toContain('WRONGTYPE');
    await client.del(KEY);
    await other.limit(OTHER);
    await one.refresh();
    expect(one.names()).toEqual([NETWORK, OTHER]);
  });

  test('a limit that Redis has not stored stays, also if Redis had stored an earlier one', async () => {
    const one = await instance();
    await one.limit(NETWORK, 1000);
    await one.refresh();
    one.clock.now = 2000;
    await client.set(KEY, 'a text, to which no limit can be added', 'KEEPTTL');
    one.networks.limit({ network: NETWORK, until: LONGEST_MS, reason: 'unknown-names' });
    await one.refresh();
    await client.del(KEY);
    await one.refresh();
    expect(one.names()).toEqual([NETWORK]);
  });

  test('the end of a limit is logged by the instance that has set it, and by no other', async () => {
    const [one, other] = [await instance(), await instance()];
    await one.limit(NETWORK);
    for (const { refresh } of [one, other]) await refresh();
    expect([one.names(), other.names()]).toEqual([[NETWORK], [NETWORK]]);
    for (const { clock, refresh } of [one, other]) {
      clock.now += LONGEST_MS + 1000;
      await client.del(KEY);
      await refresh();
    }
    const ends = ({ lines }: typeof one) => lines.filter(({ msg }) => msg === 'network no longer limited');
    expect([ends(one).length, ends(other).length]).toEqual([1, 0]);
  });

  test('of two limits on a network, the later end counts', async () => {
    const one = await instance();
    await one.limit(NETWORK);
    await client.zadd(KEY, (await redisTime()) + 2000, `most-misses ${NETWORK}`);
    await one.refresh();
    expect(one.networks.find(NETWORK)?.until).toBe(LONGEST_MS);
  });

  test('an expired limit is not read from Redis, and is removed with the next limit', async () => {
    const one = await instance();
    await client.zadd(KEY, (await redisTime()) - 60_000, `unknown-names ${OTHER}`);
    await one.refresh();
    expect(one.networks.find(OTHER)).toBe(undefined);
    expect(await client.zcard(KEY)).toBe(1);
    await one.limit(NETWORK);
    expect(await client.zrange(KEY, '0', '-1')).toEqual([`unknown-names ${NETWORK}`]);
  });

  test('expired limits in Redis leave room for 10,000 current ones', async () => {
    const one = await instance();
    const now = await redisTime();
    const expired = Array.from({ length: 10_000 }, (_, at) => [now - 60_000, `unknown-names ${at}`]);
    await client.zadd(KEY, ...expired.flat());
    await client.zadd(KEY, now + 60_000, `unknown-names ${NETWORK}`);
    await one.refresh();
    expect(one.names()).toEqual([NETWORK]);
  });

  test('a reason of a later version is ignored', async () => {
    const one = await instance();
    await client.zadd(KEY, (await redisTime()) + 60_000, `another-reason ${NETWORK}`);
    await one.refresh();
    expect(one.names()).toEqual([]);
  });

  test('the key in Redis expires with the last limit', async () => {
    const one = await instance();
    await one.limit(NETWORK, 500_000);
    await one.limit(OTHER, 1000);
    expect(await client.pttl(KEY)).toBeGreaterThan(400_000);
    expect(await client.pttl(KEY)).toBeLessThanOrEqual(500_000);
  });
});
