// Names that were made and nobody heard of: kept for a while, given out once, known to all workers.
import { describe, expect, test } from 'vitest';
import { createKeyLock } from '../../src/coordination/key-lock.js';
import {
  LocalUnclaimedNames,
  type UnclaimedNames,
  createUnclaimedNames,
} from '../../src/coordination/unclaimed-names.js';

const lock = createKeyLock({ waitMs: 1000 });

describe('names in one process', () => {
  let time = 0;
  const make = (): UnclaimedNames =>
    createUnclaimedNames({ left: new LocalUnclaimedNames(() => time), lock });

  test('are given out once, in the order in which they were left', async () => {
    const unclaimed = make();
    await unclaimed.leave('ask', 'P/1');
    await unclaimed.leave('ask', 'P/2 with a space');
    const claims = [1, 2, 3].map(() => unclaimed.claim('ask'));
    expect(await Promise.all(claims)).toEqual(['P/1', 'P/2 with a space', undefined]);
    expect(await unclaimed.claim('other')).toBeUndefined();
  });

  test('are forgotten after an hour', async () => {
    const unclaimed = make();
    await unclaimed.leave('ask', 'P/1');
    time += 3_600_000;
    expect(await unclaimed.claim('ask')).toBeUndefined();
  });

  test('are in memory while Redis is away', async () => {
    const away = { keyPrefix: 't:', run: () => Promise.resolve(undefined) };
    const left = new LocalUnclaimedNames(() => 0);
    const unclaimed = createUnclaimedNames({ left, lock, shared: away });
    await unclaimed.leave('ask', 'P/1');
    expect(await unclaimed.claim('ask')).toBe('P/1');
  });
});

test('a name that one worker left is claimed by one of all', async () => {
  const lefts = [1, 2, 3].map(() => new LocalUnclaimedNames(() => 0));
  const workers = lefts.map((left) => {
    const tell = (line: string): Promise<void> => {
      for (const other of lefts) if (other !== left) expect(other.receive(line)).toBe(true);
      return Promise.resolve();
    };
    return createUnclaimedNames({ left, lock, tell });
  });
  await workers[0]!.leave('ask', 'P/1');
  const claims = await Promise.all(workers.map((worker) => worker.claim('ask')));
  expect(claims.filter((name) => name !== undefined)).toEqual(['P/1']);
});

test('lines about something else are left to others', () => {
  expect(new LocalUnclaimedNames(() => 0).receive('forget - 0 left a b')).toBe(false);
});
