// The steps that Redis takes as one: what they refuse, what they publish, and what is left after them.
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { GROUPS, groupOf } from '../../src/cache/coherence/groups.js';
import type { Change } from '../../src/cache/coherence/message.js';
import { asStale } from '../../src/cache/entry.js';
import { readNumbers } from '../../src/cache/redis/group-states.js';
import { groupNames } from '../../src/cache/redis/namespace.js';
import { FENCE_MS, PREFIX, describeScripts, runNamed } from '../support/script-client.js';
import { entryOf } from '../support/store-contract.js';

const KEY = '21.T1/KEY';
const [ENTRY, STATE] = groupNames(PREFIX, KEY);
const FENCE = 'me/0.1';
const forget = (key = KEY): Change => ({ kind: 'forget', key });
const raise = (fence = FENCE, lifeMs = FENCE_MS): Change => ({ kind: 'raise', key: KEY, fence, lifeMs });
const ban = (prefix: string, isSoft = false): Change => ({ kind: 'ban', prefix, isSoft, number: 0 });

/** Other keys of the group of KEY. */
function keysOfOneGroup(count: number): string[] {
  const keys: string[] = [];
  for (let at = 0; keys.length < count; at++)
    if (groupOf(`21.T1/${at}`) === groupOf(KEY)) keys.push(`21.T1/${at}`);
  return keys;
}

describeScripts('the scripts of cache coherence', (world) => {
  test('a load is stored, and given back', async () => {
    expect(await world.scripts.put(KEY, entryOf('x'))).toBe(true);
    expect(await world.scripts.read(KEY)).toEqual(entryOf('x'));
    expect(await world.client.pttl(ENTRY)).toBeGreaterThan(0);
  });

  test.each<[string, Change]>([
    ['it was changed', { kind: 'changed', key: KEY, fence: FENCE }],
    ['it was forgotten', forget()],
    ['it was softened', { kind: 'soften', key: KEY }],
    ['a write of it has begun', raise()],
  ])('a load is refused when %s since', async (_why, change) => {
    const ticket = await world.scripts.ticket(KEY);
    await world.scripts.publish(change);
    await world.scripts.publish({ kind: 'unchanged', key: KEY, fence: FENCE });
    expect(await world.scripts.store.set(KEY, entryOf('old'), ticket)).toBe(false);
    expect(await world.scripts.put(KEY, entryOf('new'))).toBe(true);
  });

  test('an authoritative answer is stored, and makes void every load from before, in one step', async () => {
    const [older, ticket] = [await world.scripts.ticket(KEY), await world.scripts.ticket(KEY)];
    const replacement = world.scripts.store.replacement(KEY, entryOf('new'), ticket);
    expect(await world.scripts.change({ kind: 'forget', key: KEY, replacement })).toMatchObject({
      isStored: true,
    });
    expect(await world.scripts.store.set(KEY, entryOf('old'), older)).toBe(false);
    expect(await world.scripts.read(KEY)).toEqual(entryOf('new'));
  });

  test.each<[string, Change]>([
    ['the key was changed since', forget()],
    ['a write of the key is in flight', raise()],
  ])('an authoritative answer is refused, and the entry is deleted, when %s', async (_why, change) => {
    const ticket = await world.scripts.ticket(KEY);
    await world.scripts.put(KEY, entryOf('old'));
    await world.scripts.publish(change);
    const replacement = world.scripts.store.replacement(KEY, entryOf('new'), ticket);
    expect(await world.scripts.change({ kind: 'forget', key: KEY, replacement })).toMatchObject({
      isStored: false,
    });
    expect(await world.scripts.read(KEY)).toBeUndefined();
  });

  test('an authoritative answer that began during a write that is still in flight is not stored', async () => {
    await world.scripts.publish(raise());
    const replacement = world.scripts.store.replacement(KEY, entryOf('new'), await world.scripts.ticket(KEY));
    expect(await world.scripts.change({ kind: 'forget', key: KEY, replacement })).toMatchObject({
      isStored: false,
    });
  });

  test('an authoritative answer that began under another server run is not stored', async () => {
    const replacement = world.scripts.store.replacement(KEY, entryOf('new'), await world.scripts.ticket(KEY));
    world.scripts.run = runNamed('next');
    expect(await world.scripts.change({ kind: 'forget', key: KEY, replacement })).toMatchObject({
      isStored: false,
    });
  });

  test('a load is stored when only another key of its group was changed', async () => {
    const ticket = await world.scripts.ticket(KEY);
    await world.scripts.publish(forget(keysOfOneGroup(1)[0]));
    expect(await world.scripts.store.set(KEY, entryOf('x'), ticket)).toBe(true);
  });

  test('a load is refused while a fence stands, and stored when the last one is lowered', async () => {
    await world.scripts.publish(raise('me/0.1'));
    await world.scripts.publish(raise('other/0.1'));
    expect((await world.scripts.ticket(KEY))?.isFenced).toBe(true);
    await world.scripts.publish({ kind: 'unchanged', key: KEY, fence: 'me/0.1' });
    expect(await world.scripts.put(KEY, entryOf('x'))).toBe(false);
    await world.scripts.publish({ kind: 'unchanged', key: KEY, fence: 'other/0.1' });
    expect(await world.scripts.put(KEY, entryOf('x'))).toBe(true);
    expect((await world.scripts.ticket(KEY))?.isFenced).toBe(false);
  });

  test('a fence expires, and is cleared by the next load', async () => {
    await world.scripts.publish(raise(FENCE, 1));
    await expect.poll(() => world.scripts.put(KEY, entryOf('x'))).toBe(true);
    expect((await world.scripts.ticket(KEY))?.isFenced).toBe(false);
  });

  test('a load is refused when its state belongs to another server run', async () => {
    const ticket = await world.scripts.ticket(KEY);
    world.scripts.run = runNamed('next');
    await readNumbers(world.scripts.commands);
    expect(await world.scripts.store.set(KEY, entryOf('x'), ticket)).toBe(false);
    expect(await world.scripts.put(KEY, entryOf('x'))).toBe(true);
  });

  test('what was stored under another server run is never read', async () => {
    await world.scripts.put(KEY, entryOf('x'));
    world.scripts.run = runNamed('next');
    expect(await world.scripts.read(KEY)).toBeUndefined();
    await readNumbers(world.scripts.commands);
    expect(await world.scripts.read(KEY)).toBeUndefined();
  });

  test('the changes of a group are trimmed, and a load from before those is refused', async () => {
    const ticket = await world.scripts.ticket(KEY);
    const keys = keysOfOneGroup(300);
    for (const key of keys) await world.scripts.publish(forget(key));
    expect(await world.client.hlen(STATE)).toBeLessThan(200);
    expect(await world.scripts.store.set(KEY, entryOf('old'), ticket)).toBe(false);
    expect(await world.scripts.put(KEY, entryOf('new'))).toBe(true);
  });

  test('trimming keeps the fences that stand, and drops those that have expired', async () => {
    const [dead = '', ...keys] = keysOfOneGroup(300);
    await world.scripts.publish(raise());
    await world.scripts.publish({ kind: 'raise', key: dead, fence: FENCE, lifeMs: 1 });
    await expect.poll(() => world.scripts.put(dead, entryOf('x'))).toBe(true);
    await world.client.hset(STATE, `f:${dead}`, 'gone/0.1=1');
    for (const key of keys) await world.scripts.publish(forget(key));
    expect(await world.client.hmget(STATE, `f:${KEY}`, `f:${dead}`)).toEqual([expect.any(String), null]);
    expect(await world.scripts.put(KEY, entryOf('x'))).toBe(false);
  });

  test('numbers follow one another in a group, and grow over FLUSHALL', async () => {
    const first = await world.scripts.publish(forget());
    expect(await world.scripts.publish(forget(keysOfOneGroup(1)[0]))).toBe(first + 1);
    expect((await readNumbers(world.scripts.commands)).get(groupOf(KEY))?.seq).toBe(first + 1);
    const ticket = await world.scripts.ticket(KEY);
    await world.client.flushall();
    expect(await world.scripts.publish(forget(keysOfOneGroup(1)[0]))).toBeGreaterThan(first + 2);
    expect(await world.scripts.store.set(KEY, entryOf('old'), ticket)).toBe(false);
  });

  test('numbers of a run never go back, also when the clock of the server before was ahead and the state is lost', async () => {
    await world.client.hset(STATE, 'run', 'old-run', 'seq', '8000000000000000');
    const first = await world.scripts.publish(forget());
    expect(first).toBeLessThan(8e15);
    await world.client.del(STATE);
    expect(await world.scripts.publish(forget())).toBeGreaterThan(first);
  });

  test('a state that Redis has lost is created by the next read, and its group is shared again', async () => {
    const ticket = await world.scripts.ticket(KEY);
    await world.client.del(STATE);
    expect(await world.scripts.ticket(KEY)).toBeUndefined();
    await expect.poll(() => world.scripts.put(KEY, entryOf('new'))).toBe(true);
    expect(await world.scripts.store.set(KEY, entryOf('old'), ticket)).toBe(false);
  });

  test('every group has its state, and reading it changes no number', async () => {
    const numbers = await readNumbers(world.scripts.commands);
    expect(numbers.size).toBe(GROUPS + 1);
    expect(await readNumbers(world.scripts.commands)).toEqual(numbers);
  });

  test('a full Redis stores no load, and publishes every change', async () => {
    await world.scripts.put(KEY, entryOf('old'));
    await world.client.config('SET', 'maxmemory', '1');
    await expect(world.scripts.put(KEY, entryOf('new'))).rejects.toThrow('OOM');
    const number = await world.scripts.publish(raise());
    expect(await world.scripts.publish({ kind: 'changed', key: KEY, fence: FENCE })).toBe(number + 1);
    expect(await world.scripts.read(KEY)).toBeUndefined();
    expect(await world.scripts.publish(ban('21.T1/'))).toBeGreaterThan(0);
    expect((await world.scripts.members('me').renew()).was).toBe('absent');
  });

  test.each<Change['kind']>(['raise', 'changed', 'unchanged', 'unknown', 'forget', 'soften'])(
    '"%s" is published with its number in the same step',
    async (kind) => {
      const change = { kind, key: KEY, fence: FENCE, lifeMs: FENCE_MS } as Change;
      const listener = new Redis(world.redis.url);
      const heard = new Promise((resolve) =>
        listener.once('message', (_channel, text) => {
          resolve(text);
        }),
      );
      await listener.subscribe(`${PREFIX}messages`);
      const number = await world.scripts.publish(change);
      expect(await heard).toMatch(new RegExp(`^${number} me - ${kind} `));
      listener.disconnect();
    },
  );

  test('a fresh entry expires with the fence of a writer that died', async () => {
    await world.scripts.put(KEY, entryOf('old'));
    await world.scripts.publish(raise());
    expect(await world.scripts.read(KEY)).toEqual(entryOf('old'));
    expect(await world.client.pttl(ENTRY)).toBeLessThanOrEqual(FENCE_MS);
  });

  test('a refused write restores the TTL of the entry, when no other write is in flight', async () => {
    await world.scripts.put(KEY, entryOf('old'));
    await world.scripts.publish(raise('me/0.1'));
    await world.scripts.publish(raise('other/0.1'));
    await world.scripts.publish({ kind: 'unchanged', key: KEY, fence: 'me/0.1' });
    expect(await world.client.pttl(ENTRY)).toBeLessThanOrEqual(FENCE_MS);
    await world.scripts.publish({ kind: 'unchanged', key: KEY, fence: 'other/0.1' });
    expect(await world.client.pttl(ENTRY)).toBeGreaterThan(FENCE_MS);
  });

  test('a write of unknown outcome leaves a stale entry its life', async () => {
    await world.scripts.put(KEY, entryOf('old'));
    await world.scripts.publish(raise());
    await world.scripts.publish({ kind: 'unknown', key: KEY, fence: FENCE, lifeMs: FENCE_MS });
    expect(await world.scripts.read(KEY)).toEqual(asStale(entryOf('old')));
    expect(await world.client.pttl(ENTRY)).toBeGreaterThan(FENCE_MS);
    expect(await world.scripts.put(KEY, entryOf('new'))).toBe(false);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['too short', () => world.client.set(ENTRY, 'garbage')],
    ['without a sensible life', () => world.client.set(ENTRY, Buffer.alloc(100, 0x7f))],
    ['all zeros', () => world.client.set(ENTRY, Buffer.alloc(100))],
    ['of another type', () => world.client.rpush(ENTRY, 'x')],
  ])('what is in the place of an entry and %s keeps no change from being published', async (_what, place) => {
    for (const change of [
      raise(),
      { kind: 'unchanged', key: KEY, fence: FENCE },
      { kind: 'unknown', key: KEY, fence: FENCE, lifeMs: FENCE_MS },
      { kind: 'soften', key: KEY },
      { kind: 'changed', key: KEY, fence: FENCE },
    ] satisfies Change[]) {
      await world.client.del(ENTRY);
      await place();
      expect(await world.scripts.publish(change)).toBeGreaterThan(0);
    }
    expect(await world.client.exists(ENTRY)).toBe(0);
  });

  test.each(['string', 'list'])('a %s in the place of a state is replaced by a state', async (type) => {
    const bans = `${PREFIX}{bans}:state`;
    for (const name of [STATE, bans, `${PREFIX}members`]) {
      await world.client.del(name);
      await (type === 'list' ? world.client.rpush(name, 'x') : world.client.set(name, 'x'));
    }
    const number = await world.scripts.publish(forget());
    expect((await readNumbers(world.scripts.commands)).get(groupOf(KEY))?.seq).toBe(number);
    expect(await world.scripts.publish(ban('21.T1/'))).toBeGreaterThan(0);
    expect((await world.scripts.members('me').renew()).count).toBe(1);
  });
});
