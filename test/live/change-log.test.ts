// The change log in memory and on a real Redis: positions, gaps, and the webhook's reader lease.
import { partial } from '../support/partial.js';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Cache } from '../../src/cache/cache.js';
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { type ChangeLog, createChangeLog } from '../../src/plugins/changes/change-log.js';
import { PATIENT_MS, describeWithRedis } from '../support/redis-server.js';
import { useRedis } from '../support/use-redis.js';

/** The first entry of each epoch. */
const GAP = 'gap 0';

const MAX_CHARS = 100_000;

const createLog = (cache: Cache): ChangeLog =>
  createChangeLog(
    cache,
    { maxEntries: 100, maxChars: MAX_CHARS },
    () => 1000,
    (count) => `gap ${count}`,
  );
/** Trimming takes several entries at a time. */
const isAboutTen = (count: number): boolean => count >= 9 && count <= 12;
const linesAfter = async (log: ChangeLog, id: string): Promise<string[] | undefined> =>
  (await log.read(id))?.entries.map(({ line }) => line);

function testChangeLog(create: () => Promise<ChangeLog>): void {
  test('returns entries after an id in order, 100 at a time', async () => {
    const log = await create();
    const start = (await log.tail()) ?? '';
    expect(await linesAfter(log, start)).toEqual([]);
    const lines = Array.from({ length: 105 }, (_, at) => `line ${at}`);
    await log.append(lines.slice(0, 3));
    await log.append(lines.slice(3));
    const first = await log.read(start);
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

  test('trims long entries earlier, and reports a gap for them', async () => {
    const log = await create();
    await log.append(['first']);
    const id = (await log.tail()) ?? '';
    for (let count = 0; count < 20; count++) await log.append([`${count}`.padEnd(10_000, 'x')]);
    const [gap, ...left] = (await linesAfter(log, id)) ?? [];
    expect([gap, left.length]).toEqual([`gap ${20 - left.length}`, expect.toSatisfy(isAboutTen)]);
    expect(left.at(-1)).toMatch(/^19x/);
  });

  test.each(['0-0', '1-5', '999999999999999-1'])('begins with a gap after the id %s', async (id) => {
    const log = await create();
    expect(await linesAfter(log, id)).toEqual([GAP]);
    await log.append(['new']);
    expect(await linesAfter(log, id)).toEqual([GAP, 'new']);
  });

  test('stores the position of the webhook', async () => {
    const log = await create();
    expect(await log.claimReader('me', undefined)).toBe('0-0');
    expect(await log.claimReader('me', '7-7')).toBe('7-7');
    expect(await log.claimReader('me', undefined)).toBe('7-7');
  });
}

describe('change log in memory', () => {
  const cache = { commands: undefined, era: () => undefined };
  testChangeLog(() => Promise.resolve(createLog(partial(cache))));
});

describeWithRedis('change log in Redis', () => {
  const redis = useRedis();
  beforeEach(async () => {
    await redis.client.flushall();
  });

  /** Era of each instance; undefined before it has entered one. */
  let era: string | undefined;
  beforeEach(() => {
    era = 'first';
  });

  async function create(): Promise<ChangeLog> {
    const commands = new RedisCommands({ url: redis.url, keyPrefix: 't:', commandTimeoutMs: PATIENT_MS });
    onTestFinished(() => commands.close());
    await expect.poll(() => commands.isUp()).toBe(true);
    const eraOfInstance = () => (era === undefined ? undefined : { name: era, since: 0 });
    return createLog(partial({ commands: partial(commands), era: eraOfInstance }));
  }

  /** An epoch of a server whose clock is ahead. */
  const AHEAD = 999_999_999_999_990;
  async function addOfClockAhead(): Promise<void> {
    const fields = { run: 'of-another-server', line: 'old', era: 'first' };
    await redis.client.xadd('t:{changes}', `${AHEAD}-9`, ...Object.entries(fields).flat());
  }
  /** Returns the Redis clock (ms). */
  async function redisTime(): Promise<number> {
    const [seconds = 0, micros = 0] = await redis.client.time();
    return seconds * 1000 + Math.floor(micros / 1000);
  }

  testChangeLog(create);

  test('contains the same entries for all instances', async () => {
    const [one, other] = [await create(), await create()];
    await one.append(['1']);
    await other.append(['2']);
    await one.append(['3']);
    expect(await linesAfter(one, '0-0')).toEqual([GAP, '1', '2', '3']);
    expect(await other.read('0-0')).toEqual(await one.read('0-0'));
  });

  /** Replaces the log by an earlier copy. Returns the ids of its entries, and of an entry that was lost. */
  async function restoreEarlier(log: ChangeLog): Promise<{ kept: string[]; lost: string }> {
    await log.append(['1', '2']);
    const kept = ((await log.read('0-0'))?.entries ?? []).map(({ id }) => id);
    const copy = await redis.client.dumpBuffer('t:{changes}');
    await log.append(['3', '4']);
    const lost = (await log.tail()) ?? '';
    await redis.client.restore('t:{changes}', 0, copy, 'REPLACE');
    return { kept, lost };
  }

  describe('after Redis has lost the newest entries', () => {
    test.each([
      ['behind its end', 1, ['2', GAP]],
      ['at its end', 2, [GAP]],
      ['ahead of its end', undefined, [GAP]],
    ])('reports a gap to a reader %s, before and after the next change', async (_where, at, expected) => {
      const log = await create();
      const { kept, lost } = await restoreEarlier(log);
      era = 'second';
      const cursor = at === undefined ? lost : (kept[at] ?? '');
      expect(await linesAfter(log, cursor)).toEqual(expected);
      await log.append(['5']);
      expect(await linesAfter(log, cursor)).toEqual([...expected, '5']);
    });

    test('reports a single gap for all instances, of which some may still be in the earlier era', async () => {
      const [one, other, late] = [await create(), await create(), await create()];
      await late.append(['0']);
      await restoreEarlier(one);
      const before = (await one.tail()) ?? '';
      era = 'second';
      await one.append(['5']);
      await other.append(['6']);
      era = 'first';
      await late.append(['7']);
      era = 'second';
      await one.append(['8']);
      await late.append(['9']);
      expect(await linesAfter(one, before)).toEqual([GAP, '5', '6', '7', '8', '9']);
    });

    test('accepts no entry before the instance has entered the era of Redis', async () => {
      const log = await create();
      era = undefined;
      await expect(log.append(['too early'])).rejects.toThrow('redis is unavailable');
      expect(await linesAfter(log, '0-0')).toEqual([]);
    });

    test('does not repeat the retained entries to a reader before the instance has entered the era', async () => {
      const log = await create();
      const { lost } = await restoreEarlier(log);
      era = undefined;
      expect(await log.read(lost)).toBeUndefined();
      era = 'second';
      expect(await linesAfter(log, lost)).toEqual([GAP]);
    });
  });

  test('reports a gap after a restart or failover of Redis, which may have lost entries', async () => {
    const log = await create();
    await addOfClockAhead();
    await log.append(['new']);
    expect(await log.read(`${AHEAD}-9`)).toEqual({
      missed: 0,
      entries: [
        { id: `${AHEAD + 1}-1`, line: GAP },
        { id: `${AHEAD + 1}-2`, line: 'new' },
      ],
    });
  });

  test('reports a gap to a reader of a log that was lost, before and after the next change', async () => {
    const [one, other] = [await create(), await create()];
    await addOfClockAhead();
    await one.append(['1', '2']);
    const id = (await one.tail()) ?? '';
    // The clock of the server that now is the master is behind.
    await redis.client.del('t:{changes}');
    expect(await linesAfter(other, id)).toEqual([GAP]);
    await other.append(['3']);
    expect(await linesAfter(one, id)).toEqual([GAP, '3']);
  });

  test('reports a gap for a log that was lost, though the clock of its instance stands still', async () => {
    const log = await create();
    const id = (await log.tail()) ?? '';
    await redis.client.del('t:{changes}');
    await expect.poll(redisTime).toBeGreaterThan(Number.parseInt(id));
    await log.append(['1']);
    expect(await linesAfter(log, id)).toEqual([GAP, '1']);
  });

  test('accepts entries when the memory of Redis is full', async () => {
    const log = await create();
    await redis.client.config('SET', 'maxmemory', '1');
    onTestFinished(async () => {
      await redis.client.config('SET', 'maxmemory', '0');
    });
    await log.append(['full']);
    expect(await linesAfter(log, '0-0')).toEqual([GAP, 'full']);
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
