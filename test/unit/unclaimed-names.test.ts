// Minted names whose response was lost: stored for a limited time, and assigned once.
import { describe, expect, test } from 'vitest';
import { type UnclaimedNames, createUnclaimedNames } from '../../src/v2/unclaimed-names.js';
import type { RedisCommands } from '../../src/cache/redis/commands.js';
import { partial } from '../support/partial.js';

describe('unclaimed minted names in one process', () => {
  let time = 1;
  const make = (): UnclaimedNames => createUnclaimedNames(() => time);

  test('are assigned once, in order', async () => {
    const unclaimed = make();
    await unclaimed.add('ask', 'P/1');
    await unclaimed.add('ask', 'P/2 with a space');
    const taken = [1, 2, 3].map(() => unclaimed.take('ask'));
    expect(await Promise.all(taken)).toEqual(['P/1', 'P/2 with a space', undefined]);
    expect(await unclaimed.take('other')).toBeUndefined();
  });

  test('are not assigned after their removal', async () => {
    const unclaimed = make();
    for (const name of ['P/1', 'P/2']) await unclaimed.add('ask', name);
    await unclaimed.remove('ask', 'P/1');
    expect([await unclaimed.take('ask'), await unclaimed.take('ask')]).toEqual(['P/2', undefined]);
  });

  test('expire after an hour', async () => {
    const unclaimed = make();
    await unclaimed.add('ask', 'P/1');
    time += 3_600_001;
    expect(await unclaimed.take('ask')).toBeUndefined();
  });

  test('stay in memory while Redis is unavailable', async () => {
    const away = partial<RedisCommands>({ keyPrefix: 't:', run: () => Promise.resolve(undefined) });
    const unclaimed = createUnclaimedNames(() => 0, away);
    await unclaimed.add('ask', 'P/1');
    expect(await unclaimed.take('ask')).toBe('P/1');
  });
});
