// Minted names whose response was lost: kept for a while, given out once, shared by all workers.
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
    createUnclaimedNames({ local: new LocalUnclaimedNames(() => time), lock });

  test('are given out once, in the order in which they were added', async () => {
    const unclaimed = make();
    await unclaimed.add('ask', 'P/1');
    await unclaimed.add('ask', 'P/2 with a space');
    const taken = [1, 2, 3].map(() => unclaimed.take('ask'));
    expect(await Promise.all(taken)).toEqual(['P/1', 'P/2 with a space', undefined]);
    expect(await unclaimed.take('other')).toBeUndefined();
  });

  test('expire after an hour', async () => {
    const unclaimed = make();
    await unclaimed.add('ask', 'P/1');
    time += 3_600_000;
    expect(await unclaimed.take('ask')).toBeUndefined();
  });

  test('are in memory while Redis is unavailable', async () => {
    const away = { keyPrefix: 't:', run: () => Promise.resolve(undefined) };
    const local = new LocalUnclaimedNames(() => 0);
    const unclaimed = createUnclaimedNames({ local, lock, shared: away });
    await unclaimed.add('ask', 'P/1');
    expect(await unclaimed.take('ask')).toBe('P/1');
  });
});

test('a name that one worker added is taken by one of all', async () => {
  const stores = [1, 2, 3].map(() => new LocalUnclaimedNames(() => 0));
  const workers = stores.map((local) => {
    const broadcast = (line: string): Promise<void> => {
      for (const other of stores) if (other !== local) other.receive(line);
      return Promise.resolve();
    };
    return createUnclaimedNames({ local, lock, broadcast });
  });
  await workers[0]!.add('ask', 'P/1');
  const taken = await Promise.all(workers.map((worker) => worker.take('ask')));
  expect(taken.filter((name) => name !== undefined)).toEqual(['P/1']);
});

test('ignores lines of another kind', () => {
  const local = new LocalUnclaimedNames(() => 0);
  local.receive('forget - 0 added a b');
  expect(local.get('a')).toEqual([]);
});
