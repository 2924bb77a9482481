// Redis scripts for cache coherence: rejected loads, published messages, and remaining keys.
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

/** Returns `count` keys in the group of KEY. */
function keysOfOneGroup(count: number, suffix = ''): string[] {
  const keys: string[] = [];
  for (let at = 0; keys.length < count; at++) {
    const key = `21.T1/${at}${suffix}`;
    if (groupOf(key) === groupOf(KEY)) keys.push(key);
  }
  return keys;
}

describeScripts('Redis scripts for cache coherence', (world) => {
  test('store and return a load', async () => {
    expect(await world.scripts.put(KEY, entryOf('x'))).toBe(true);
    expect(await world.scripts.read(KEY)).toEqual(entryOf('x'));
    expect(await world.client.pttl(ENTRY)).toBeGreaterThan(0);
  });

  test.each<[string, Change]>([
    ['its key has been changed', { kind: 'changed', key: KEY, fence: FENCE }],
    ['its key has been invalidated', forget()],
    ['its key has been marked stale', { kind: 'soften', key: KEY }],
    ['a write to its key has started', raise()],
  ])('reject a load when %s since its start', async (_why, change) => {
    const ticket = await world.scripts.ticket(KEY);
    await world.scripts.publish(change);
    await world.scripts.publish({ kind: 'unchanged', key: KEY, fence: FENCE });
    expect(await world.scripts.store.set(KEY, entryOf('old'), ticket)).toBe(false);
    expect(await world.scripts.put(KEY, entryOf('new'))).toBe(true);
  });

  test('store an authoritative response and void all earlier loads atomically', async () => {
    const [older, ticket] = [await world.scripts.ticket(KEY), await world.scripts.ticket(KEY)];
    const replacement = world.scripts.store.replacement(KEY, entryOf('new'), ticket);
    expect(await world.scripts.change({ kind: 'forget', key: KEY, replacement })).toMatchObject({
      isStored: true,
    });
    expect(await world.scripts.store.set(KEY, entryOf('old'), older)).toBe(false);
    expect(await world.scripts.read(KEY)).toEqual(entryOf('new'));
  });

  test.each<[string, Change]>([
    ['the key has been changed since the read started', forget()],
    ['a write to the key is in flight', raise()],
  ])('reject an authoritative response and delete the entry when %s', async (_why, change) => {
    const ticket = await world.scripts.ticket(KEY);
    await world.scripts.put(KEY, entryOf('old'));
    await world.scripts.publish(change);
    const replacement = world.scripts.store.replacement(KEY, entryOf('new'), ticket);
    expect(await world.scripts.change({ kind: 'forget', key: KEY, replacement })).toMatchObject({
      isStored: false,
    });
    expect(await world.scripts.read(KEY)).toBeUndefined();
  });

  test('reject an authoritative response whose read started under a raised fence', async () => {
    await world.scripts.publish(raise());
    const replacement = world.scripts.store.replacement(KEY, entryOf('new'), await world.scripts.ticket(KEY));
    expect(await world.scripts.change({ kind: 'forget', key: KEY, replacement })).toMatchObject({
      isStored: false,
    });
  });

  test('reject an authoritative response whose read started under a previous server run', async () => {
    const replacement = world.scripts.store.replacement(KEY, entryOf('new'), await world.scripts.ticket(KEY));
    world.scripts.run = runNamed('next');
    expect(await world.scripts.change({ kind: 'forget', key: KEY, replacement })).toMatchObject({
      isStored: false,
    });
  });

  test('store a load when only a different key of its group has changed', async () => {
    const ticket = await world.scripts.ticket(KEY);
    await world.scripts.publish(forget(keysOfOneGroup(1)[0]));
    expect(await world.scripts.store.set(KEY, entryOf('x'), ticket)).toBe(true);
  });

  test('reject loads until the last fence is lowered', async () => {
    await world.scripts.publish(raise('me/0.1'));
    await world.scripts.publish(raise('other/0.1'));
    expect((await world.scripts.ticket(KEY))?.isFenced).toBe(true);
    await world.scripts.publish({ kind: 'unchanged', key: KEY, fence: 'me/0.1' });
    expect(await world.scripts.put(KEY, entryOf('x'))).toBe(false);
    await world.scripts.publish({ kind: 'unchanged', key: KEY, fence: 'other/0.1' });
    expect(await world.scripts.put(KEY, entryOf('x'))).toBe(true);
    expect((await world.scripts.ticket(KEY))?.isFenced).toBe(false);
  });

  test('expire a fence, which the next load removes', async () => {
    await world.scripts.publish(raise(FENCE, 1));
    await expect.poll(() => world.scripts.put(KEY, entryOf('x'))).toBe(true);
    expect((await world.scripts.ticket(KEY))?.isFenced).toBe(false);
  });

  test('reject a load whose state was read from a previous server run', async () => {
    const ticket = await world.scripts.ticket(KEY);
    world.scripts.run = runNamed('next');
    await readNumbers(world.scripts.commands);
    expect(await world.scripts.store.set(KEY, entryOf('x'), ticket)).toBe(false);
    expect(await world.scripts.put(KEY, entryOf('x'))).toBe(true);
  });

  test('return no entry stored in a previous server run', async () => {
    await world.scripts.put(KEY, entryOf('x'));
    world.scripts.run = runNamed('next');
    expect(await world.scripts.read(KEY)).toBeUndefined();
    await readNumbers(world.scripts.commands);
    expect(await world.scripts.read(KEY)).toBeUndefined();
  });

  test('trim the changes of a group, and reject loads that started before the trimmed changes', async () => {
    const ticket = await world.scripts.ticket(KEY);
    const keys = keysOfOneGroup(300);
    for (const key of keys) await world.scripts.publish(forget(key));
    expect(await world.client.hlen(STATE)).toBeLessThan(200);
    expect(await world.scripts.store.set(KEY, entryOf('old'), ticket)).toBe(false);
    expect(await world.scripts.put(KEY, entryOf('new'))).toBe(true);
  });

  test('count the change of a long key as several, because anyone may send names of kilobytes', async () => {
    const ticket = await world.scripts.ticket(KEY);
    for (const key of keysOfOneGroup(100, 'x'.repeat(2000))) await world.scripts.publish(forget(key));
    expect(await world.client.hlen(STATE)).toBeLessThan(30);
    expect(await world.scripts.store.set(KEY, entryOf('old'), ticket)).toBe(false);
    expect(await world.scripts.put(KEY, entryOf('new'))).toBe(true);
  });

  test('keep raised fences and drop expired fences when trimming', async () => {
    const [dead = '', ...keys] = keysOfOneGroup(300);
    await world.scripts.publish(raise());
    await world.scripts.publish({ kind: 'raise', key: dead, fence: FENCE, lifeMs: 1 });
    await expect.poll(() => world.scripts.put(dead, entryOf('x'))).toBe(true);
    await world.client.hset(STATE, `f:${dead}`, 'gone/0.1=1');
    for (const key of keys) await world.scripts.publish(forget(key));
    expect(await world.client.hmget(STATE, `f:${KEY}`, `f:${dead}`)).toEqual([expect.any(String), null]);
    expect(await world.scripts.put(KEY, entryOf('x'))).toBe(false);
  });

  test('number the changes of a group consecutively, and increase the numbers after FLUSHALL', async () => {
    const first = await world.scripts.publish(forget());
    expect(await world.scripts.publish(forget(keysOfOneGroup(1)[0]))).toBe(first + 1);
    expect((await readNumbers(world.scripts.commands)).get(groupOf(KEY))?.seq).toBe(first + 1);
    const ticket = await world.scripts.ticket(KEY);
    await world.client.flushall();
    expect(await world.scripts.publish(forget(keysOfOneGroup(1)[0]))).toBeGreaterThan(first + 2);
    expect(await world.scripts.store.set(KEY, entryOf('old'), ticket)).toBe(false);
  });

  test('never decrease the numbers of a run, even after a fast clock and a lost state', async () => {
    await world.client.hset(STATE, 'run', 'old-run', 'seq', '8000000000000000');
    const first = await world.scripts.publish(forget());
    expect(first).toBeLessThan(8e15);
    await world.client.del(STATE);
    expect(await world.scripts.publish(forget())).toBeGreaterThan(first);
  });

  test('recreate a lost state on the next read, and then store loads for its group again', async () => {
    const ticket = await world.scripts.ticket(KEY);
    await world.client.del(STATE);
    expect(await world.scripts.ticket(KEY)).toBeUndefined();
    await expect.poll(() => world.scripts.put(KEY, entryOf('new'))).toBe(true);
    expect(await world.scripts.store.set(KEY, entryOf('old'), ticket)).toBe(false);
  });

  test('keep one state per group, unchanged by reads', async () => {
    const numbers = await readNumbers(world.scripts.commands);
    expect(numbers.size).toBe(GROUPS + 1);
    expect(await readNumbers(world.scripts.commands)).toEqual(numbers);
  });

  test('publish every change when Redis is full, but store no load', async () => {
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
    'publish "%s" with its number in the same step',
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

  test('expire a fresh entry together with the fence of a dead writer', async () => {
    await world.scripts.put(KEY, entryOf('old'));
    await world.scripts.publish(raise());
    expect(await world.scripts.read(KEY)).toEqual(entryOf('old'));
    expect(await world.client.pttl(ENTRY)).toBeLessThanOrEqual(FENCE_MS);
  });

  test('restore the entry TTL after a rejected write when no other write is in flight', async () => {
    await world.scripts.put(KEY, entryOf('old'));
    await world.scripts.publish(raise('me/0.1'));
    await world.scripts.publish(raise('other/0.1'));
    await world.scripts.publish({ kind: 'unchanged', key: KEY, fence: 'me/0.1' });
    expect(await world.client.pttl(ENTRY)).toBeLessThanOrEqual(FENCE_MS);
    await world.scripts.publish({ kind: 'unchanged', key: KEY, fence: 'other/0.1' });
    expect(await world.client.pttl(ENTRY)).toBeGreaterThan(FENCE_MS);
  });

  test('keep the lifetime of a stale entry after a write of unknown outcome', async () => {
    await world.scripts.put(KEY, entryOf('old'));
    await world.scripts.publish(raise());
    await world.scripts.publish({ kind: 'unknown', key: KEY, fence: FENCE, lifeMs: FENCE_MS });
    expect(await world.scripts.read(KEY)).toEqual(asStale(entryOf('old')));
    expect(await world.client.pttl(ENTRY)).toBeGreaterThan(FENCE_MS);
    expect(await world.scripts.put(KEY, entryOf('new'))).toBe(false);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['too short', () => world.client.set(ENTRY, 'garbage')],
    ['without a plausible lifetime', () => world.client.set(ENTRY, Buffer.alloc(100, 0x7f))],
    ['all zeros', () => world.client.set(ENTRY, Buffer.alloc(100))],
    ['of a wrong type', () => world.client.rpush(ENTRY, 'x')],
  ])('publish changes even when an entry value is %s', async (_what, place) => {
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

  test.each(['string', 'list'])('replace a %s stored under a state key', async (type) => {
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
