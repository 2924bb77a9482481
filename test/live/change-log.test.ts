// The change log in memory and on a real Redis: positions, gaps, and the webhook's reader lease.
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { type ChangeLog, createChangeLog } from '../../src/coordination/change-log.js';
import { PATIENT_MS, describeWithRedis } from '../support/redis-server.js';
import { useRedis } from '../support/use-redis.js';

const depsAt = (now: number) => ({
  maxEntries: 100,
  now: () => now,
  formatGap: (count: number) => `gap ${count}`,
});
const linesAfter = async (log: ChangeLog, id: string): Promise<string[] | undefined> =>
  (await log.read(id))?.entries.map(({ line }) => line);

function testChangeLog(create: () => Promise<ChangeLog>): void {
  test('returns entries after an id in order, 100 at a time', async () => {
    const log = await create();
    expect(await linesAfter(log, '0-0')).toEqual([]);
    const lines = Array.from({ length: 105 }, (_, at) => `line ${at}`);
    await log.append(lines.slice(0, 3));
    await log.append(lines.slice(3));
    const first = await log.read('0-0');
    expect(first?.entries.map(({ line }) => line)).toEqual(lines.slice(0, 100));
    expect(await linesAfter(log, first?.entries.at(-1)?.id ?? '')).toEqual(lines.slice(100));
    expect(await linesAfter(log, (await log.tail()) ?? '')).toEqual([]);
  });

  test('reports a gap for an id whose next entries have been trimmed', async () => {
    const log = await create();
    await log.append(['first']);
    const id = await log.tail();
    for (let count = 0; count < 10; count++) await log.append(Array<string>(50).fill('more'));
    const batch = await log.read(id ?? '');
    expect(batch?.missed).toBeGreaterThan(0);
    expect(batch?.entries[0]).toEqual({ id, line: `gap ${batch?.missed}` });
  });

  test.each(['1-5', '999999999999999-1'])('reports a gap for the id %s from a lost log', async (id) => {
    const log = await create();
    await log.append(['new']);
    expect(await linesAfter(log, id)).toEqual(['gap 1', 'new']);
  });

  test('stores the position of the webhook', async () => {
    const log = await create();
    expect(await log.claimReader('me', undefined)).toBe('0-0');
    expect(await log.claimReader('me', '7-7')).toBe('7-7');
    expect(await log.claimReader('me', undefined)).toBe('7-7');
  });
}

describe('change log in memory', () => {
  testChangeLog(() => Promise.resolve(createChangeLog(depsAt(1000), undefined)));
});

describeWithRedis('change log in Redis', () => {
  const redis = useRedis();
  beforeEach(async () => {
    await redis.client.flushall();
  });

  async function createAt(now: number): Promise<ChangeLog> {
    const commands = new RedisCommands({ url: redis.url, keyPrefix: 't:', commandTimeoutMs: PATIENT_MS });
    onTestFinished(() => commands.close());
    await expect.poll(() => commands.isUp()).toBe(true);
    return createChangeLog(depsAt(now), commands);
  }
  const create = (): Promise<ChangeLog> => createAt(1000);

  testChangeLog(create);

  test('contains the same entries for all instances', async () => {
    const [one, other] = [await create(), await create()];
    await one.append(['1']);
    await other.append(['2']);
    await one.append(['3']);
    expect(await linesAfter(one, '0-0')).toEqual(['1', '2', '3']);
    expect(await other.read('0-0')).toEqual(await one.read('0-0'));
  });

  test('reports a gap after a restart or failover of Redis, which may have lost entries', async () => {
    const log = await create();
    await redis.client.xadd('t:{changes}', '5000-9', 'run', 'of-another-server', 'line', 'old');
    await log.append(['new']);
    expect(await log.read('5000-9')).toEqual({
      missed: 1,
      entries: [
        { id: '5000-9', line: 'gap 1' },
        { id: '5001-1', line: 'new' },
      ],
    });
  });

  test('reports a gap when an instance whose clock is behind restarts a lost log', async () => {
    const [one, other] = [await createAt(9000), await createAt(1000)];
    await one.append(['1', '2']);
    const id = await one.tail();
    await redis.client.del('t:{changes}');
    await other.append(['3']);
    expect(await linesAfter(one, id ?? '')).toEqual(['gap 1', '3']);
  });

  test('accepts entries when the memory of Redis is full', async () => {
    const log = await create();
    await redis.client.config('SET', 'maxmemory', '1');
    onTestFinished(async () => {
      await redis.client.config('SET', 'maxmemory', '0');
    });
    await log.append(['full']);
    expect(await linesAfter(log, '0-0')).toEqual(['full']);
  });

  test('grants the webhook’s reader lease to one instance at a time', async () => {
    const [one, other] = [await create(), await create()];
    expect(await one.claimReader('one', undefined)).toBe('0-0');
    expect(await other.claimReader('other', undefined)).toBeUndefined();
    await one.claimReader('one', '3-3');
    // Simulates expiry of the first instance's lease.
    await redis.client.del('t:{changes}:reader');
    expect(await other.claimReader('other', undefined)).toBe('3-3');
    expect(await one.claimReader('one', '4-4')).toBeUndefined();
    await redis.client.del('t:{changes}:reader');
    expect(await one.claimReader('one', '4-4')).toBe('3-3');
  });
});
