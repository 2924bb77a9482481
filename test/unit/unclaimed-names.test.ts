// Minted names whose response was lost: stored for a limited time, and assigned once.
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { type UnclaimedNames, createUnclaimedNames } from '../../src/v2/unclaimed-names.js';
import type { RedisCommands } from '../../src/cache/redis/commands.js';
import { type Gate, gate } from '../support/gate.js';
import { partial } from '../support/partial.js';
import { describeScripts } from '../support/script-client.js';

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
    const away = partial<RedisCommands>({
      keyPrefix: 't:',
      isUp: () => false,
      run: () => Promise.resolve(undefined),
    });
    const unclaimed = createUnclaimedNames(() => 0, away);
    await unclaimed.add('ask', 'P/1');
    expect(await unclaimed.take('ask')).toBe('P/1');
  });

  test('are claimed with a longer timeout than that of reads, because a POST fails without an answer', async () => {
    const replies = ['P/1'];
    const timeouts: (number | undefined)[] = [];
    const run = (_name: string, _command: unknown, timeoutMs?: number): Promise<unknown> => {
      timeouts.push(timeoutMs);
      return Promise.resolve(replies.shift());
    };
    const isUp = (): boolean => true;
    const commands = partial<RedisCommands>({ keyPrefix: 't:', isUp, run: run as RedisCommands['run'] });
    const taking = createUnclaimedNames(() => 0, commands).take('ask');
    await expect(taking).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(timeouts).toEqual([2000, 2000]);
  });
});

/** Creates a Redis that can hang at a command: it executes it, and later ones, once it is thawed. */
function createHangingRedis() {
  const names: string[] = [];
  const state = { isUp: true, hangsAt: '', losesReplies: false };
  let frozen: Gate | undefined;
  const execute = async <T>(command: string, work: () => T): Promise<T> => {
    if (command === state.hangsAt) frozen ??= gate();
    await frozen?.opened;
    const reply = work();
    if (state.losesReplies) throw new Error('the connection was closed');
    return reply;
  };
  const removeAll = (name: string): number => {
    const kept = names.filter((other) => other !== name);
    return names.splice(0, names.length, ...kept).length - kept.length;
  };
  const redis = {
    lindex: () => execute('lindex', () => names[0] ?? null),
    lrem: (_key: string, _count: number, name: string) => execute('lrem', () => removeAll(name)),
    eval: (_script: string, _keys: number, _key: string, name: string) =>
      execute('eval', () => names.push(name)),
  };
  const commands = partial<RedisCommands>({
    keyPrefix: 't:',
    isUp: () => state.isUp,
    async run<T>(_name: string, command: (given: Redis) => Promise<T>) {
      if (!state.isUp) return undefined;
      const sent = command(redis as unknown as Redis);
      await new Promise((resolve) => setImmediate(resolve));
      if (frozen === undefined) return sent;
      state.isUp = false;
      return undefined;
    },
  });
  return {
    names,
    state,
    unclaimed: createUnclaimedNames(() => 0, commands),
    thaw: async () => {
      state.hangsAt = '';
      frozen?.open();
      frozen = undefined;
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

describe('unclaimed minted names in a Redis that answers late', () => {
  test.each(['lindex', 'lrem'])('are not lost if it hangs at %s', async (command) => {
    const { state, unclaimed, names, thaw } = createHangingRedis();
    await unclaimed.add('ask', 'P/1');
    state.hangsAt = command;
    await expect(unclaimed.take('ask')).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      retryAfterSeconds: 1,
    });
    await thaw();
    expect(names).toEqual(['P/1']);
    state.isUp = true;
    expect([await unclaimed.take('ask'), await unclaimed.take('ask')]).toEqual(['P/1', undefined]);
  });

  test('are assigned once if it stores them late', async () => {
    const { state, unclaimed, thaw } = createHangingRedis();
    state.hangsAt = 'eval';
    await unclaimed.add('ask', 'P/1');
    await thaw();
    state.isUp = true;
    expect([await unclaimed.take('ask'), await unclaimed.take('ask')]).toEqual(['P/1', undefined]);
  });

  test('are assigned once if it stores them late, and its reply is lost', async () => {
    const { state, unclaimed, names, thaw } = createHangingRedis();
    Object.assign(state, { hangsAt: 'eval', losesReplies: true });
    await unclaimed.add('ask', 'P/1');
    await thaw();
    expect(names).toEqual(['P/1']);
    Object.assign(state, { isUp: true, losesReplies: false });
    expect([await unclaimed.take('ask'), await unclaimed.take('ask')]).toEqual(['P/1', undefined]);
  });

  test('are not stored again if another instance has removed them', async () => {
    const { state, unclaimed, names, thaw } = createHangingRedis();
    await unclaimed.add('ask', 'P/1');
    state.hangsAt = 'lrem';
    await expect(unclaimed.take('ask')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    names.pop();
    await thaw();
    expect(names).toEqual([]);
  });

  test('are assigned once if it stores them after they were assigned without it', async () => {
    const { state, unclaimed, names, thaw } = createHangingRedis();
    state.hangsAt = 'eval';
    await unclaimed.add('ask', 'P/1');
    expect(await unclaimed.take('ask')).toBe('P/1');
    await thaw();
    expect(names).toEqual([]);
    state.isUp = true;
    expect(await unclaimed.take('ask')).toBeUndefined();
  });
});

describeScripts('unclaimed minted names in Redis', (world) => {
  test('are assigned once, in order, however often they were stored', async () => {
    const unclaimed = createUnclaimedNames(() => 0, world.scripts.commands);
    for (const name of ['P/1', 'P/2', 'P/1', 'P/3']) await unclaimed.add('ask', name);
    await unclaimed.remove('ask', 'P/3');
    const taken = [1, 2, 3].map(() => unclaimed.take('ask'));
    expect((await Promise.all(taken)).sort()).toEqual(['P/1', 'P/2', undefined]);
  });
});
