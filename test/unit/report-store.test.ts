// Resolution reports in a real Redis: repeated additions, and bounds.
import { partial } from '../support/partial.js';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import {
  type CountedReads,
  type NameCounts,
  createReportStore,
} from '../../src/plugins/reports/redis-store.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

const EMPTY: NameCounts = { names: [], maxError: 0 };
const DAY_MS = 86_400_000;

const reads = (changes: Partial<CountedReads>): CountedReads => ({
  month: '2026-11',
  prefix: '21.T1',
  totals: {},
  handles: EMPTY,
  unknown: EMPTY,
  ...changes,
});

describeWithRedis('resolution reports in Redis', () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.url);
  });
  beforeEach(() => redis.flushall());
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  const open = (runId = 'a') =>
    createReportStore(
      partial({
        keyPrefix: 't:',
        run: (_name, command) => command(redis),
        script: (source, keys, args) => redis.eval(source, keys.length, ...keys, ...args),
      }),
      3,
      runId,
    );

  it('count each addition from each run once, however often it is repeated', async () => {
    const [one, other] = [open('one'), open('other')];
    const once = reads({
      totals: { record: 2, robots: 1 },
      handles: { names: [['21.T1/A', 2]], maxError: 0 },
    });
    for (let times = 0; times < 3; times++) expect(await one.add(once, 0)).toBe(true);
    await one.add(once, 1);
    await other.add(once, 0);
    expect(await one.read('21.T1', '2026-11')).toEqual({
      totals: { record: 6, robots: 3 },
      handles: { names: [['21.T1/A', 6]], maxError: 0 },
      unknown: EMPTY,
    });
  });

  it.each([
    {
      refused: 'a key has another type',
      refuse: () => redis.set('t:{report:2026-11}:unknown:21.T1', 'of another program'),
      allow: () => redis.del('t:{report:2026-11}:unknown:21.T1'),
    },
    ...['HINCRBY', 'ZADD', 'ZPOPMIN', 'SET'].map((command) => ({
      refused: `the user may not run ${command}`,
      refuse: () => redis.call('ACL', 'SETUSER', 'default', `-${command}`),
      allow: () => redis.call('ACL', 'SETUSER', 'default', `+${command}`),
    })),
  ])('count an addition once, after the script was refused because $refused', async ({ refuse, allow }) => {
    const store = open();
    const names: [string, number][] = [['21.T1/NONE', 2]];
    const addition = reads({ totals: { record: 2 }, unknown: { names, maxError: 0 } });
    await refuse();
    try {
      for (let times = 0; times < 2; times++) await expect(store.add(addition, 0)).rejects.toThrow();
    } finally {
      await allow();
    }
    for (let times = 0; times < 2; times++) expect(await store.add(addition, 0)).toBe(true);
    expect(await store.read('21.T1', '2026-11')).toMatchObject({ totals: { record: 2 }, unknown: { names } });
  });

  it('keep the most frequent names, with the maximum error of their counts', async () => {
    const store = open();
    for (let sequence = 0; sequence < 4; sequence++) {
      const rare = Array.from({ length: 900 }, (_, at): [string, number] => [`RARE-${sequence}-${at}`, 1]);
      const names: [string, number][] = [['TOP', 1000], ...rare];
      await store.add(reads({ unknown: { names, maxError: 1 } }), sequence);
    }
    const { names, maxError } = (await store.read('21.T1', '2026-11'))?.unknown ?? EMPTY;
    expect(names).toHaveLength(1000);
    expect(names[0]).toEqual(['TOP', 4000]);
    expect(maxError).toBeGreaterThan(4);
    expect(maxError).toBeLessThan(80);
    for (const [, count] of names.slice(1)) expect(count - 1).toBeLessThanOrEqual(maxError);
  });

  it('count prefixes beyond the maximum together, and expire after fourteen months', async () => {
    const store = open();
    for (let at = 0; at < 5; at++) await store.add(reads({ prefix: `P${at}`, totals: { record: 1 } }), at);
    expect((await store.read('P2', '2026-11'))?.totals).toEqual({ record: 1 });
    expect((await store.read('P4', '2026-11'))?.totals).toEqual({});
    expect((await store.read('other', '2026-11'))?.totals).toEqual({ record: 2 });
    const keys = await redis.keys('*');
    expect(keys.length).toBe(2 + 4);
    for (const key of keys) {
      expect(key).toMatch(/^t:\{report:2026-11\}:/);
      expect(await redis.pttl(key)).toBeGreaterThan(424 * DAY_MS);
    }
  });

  it('are not added while Redis is unavailable', async () => {
    const shared = {
      keyPrefix: '',
      run: () => Promise.resolve(undefined),
      script: () => Promise.reject(new Error('down')),
    };
    const store = createReportStore(partial(shared), 1, 'a');
    expect(await store.add(reads({}), 0)).toBe(false);
    expect(await store.read('21.T1', '2026-11')).toBeUndefined();
  });
});
