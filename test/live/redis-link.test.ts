// The Redis link of an instance while Redis is slow, frozen, down or restarted.
import { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { type OpenInstance, openInstance, openLinked } from '../support/instances.js';
import { startStallClock } from '../support/stall-clock.js';
import { entryOf } from '../support/store-contract.js';
import { freePort } from '../support/free-port.js';

const LIMIT_MS = 300;
const KEY = '21.T1/KEY';

async function start(): Promise<RedisServer> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return redis;
}

const closeAtEnd = (instance: OpenInstance): OpenInstance => {
  onTestFinished(() => instance.close());
  return instance;
};

describeWithRedis('commands to a frozen Redis', () => {
  test('each fail after redis.commandTimeout, even when queued behind a stuck command', async () => {
    const redis = await start();
    const failed: string[] = [];
    const commands = new RedisCommands({
      url: redis.url,
      keyPrefix: 'test:',
      commandTimeoutMs: LIMIT_MS,
      onError: (command) => failed.push(command),
    });
    onTestFinished(() => commands.close());
    await expect.poll(() => commands.isUp()).toBe(true);
    redis.freeze();
    const stalledMs = startStallClock();
    const startedAt = performance.now();
    const first = commands.run('get', (client) => client.get('a'));
    await nextTurn(); // The first command is now in flight.
    const second = commands.run('count', (client) => client.get('b'));
    expect(await Promise.all([first, second])).toEqual([undefined, undefined]);
    expect(performance.now() - startedAt - stalledMs()).toBeLessThan(1.5 * LIMIT_MS);
    expect(failed).toEqual(expect.arrayContaining(['get', 'count']));
    expect(commands.isUp()).toBe(false);
  });
});

describeWithRedis('Redis commands of one event-loop turn', () => {
  test('share a single socket write', async () => {
    const { url } = await start();
    const commands = new RedisCommands({ url, keyPrefix: 'test:', commandTimeoutMs: LIMIT_MS });
    onTestFinished(() => commands.close());
    await expect.poll(() => commands.isUp()).toBe(true);
    const several = vi.spyOn(Socket.prototype, '_writev');
    onTestFinished(() => void vi.restoreAllMocks());
    const turn = (): Promise<unknown> =>
      Promise.all([
        commands.run('set', (redis) => redis.set('a', Buffer.from('1'))),
        commands.command('GET', 'a'),
        commands.script("return redis.call('GET', KEYS[1])", ['a'], []),
      ]);
    for (let times = 1; times <= 2; times++) {
      several.mockClear();
      expect(await turn()).toEqual(['OK', '1', '1']);
      expect(several.mock.calls.map(([chunks]) => chunks.length)).toContain(3);
    }
  });
});

describeWithRedis('Redis link of an instance', () => {
  const openWithLease = async (url: string): Promise<OpenInstance> =>
    closeAtEnd(await openLinked({ url, clock: systemClock }));

  test('has no lease while Redis is down, and receives a lease when Redis starts', async () => {
    const port = await freePort();
    const troubles: string[] = [];
    const url = `redis://127.0.0.1:${port}`;
    const instance = closeAtEnd(
      openInstance({ url, clock: systemClock, redis: { onTrouble: (reason) => troubles.push(reason) } }),
    );
    await expect.poll(() => troubles).toContainEqual(expect.stringContaining('ECONNREFUSED'));
    expect(instance.hub.isLinked()).toBe(false);
    const redis = await startRedis([], port);
    onTestFinished(() => redis.stop());
    await expect.poll(() => instance.hub.isLinked()).toBe(true);
  });

  test('loses its lease when Redis freezes, and regains the lease when Redis resumes', async () => {
    const redis = await start();
    const instance = await openWithLease(redis.url);
    onTestFinished(() => {
      redis.thaw();
    });
    redis.freeze();
    await expect.poll(() => instance.hub.isLinked()).toBe(false);
    redis.thaw();
    await expect.poll(() => instance.hub.isLinked()).toBe(true);
  });

  test('regains its lease after a Redis restart, and marks all earlier entries stale', async () => {
    const redis = await start();
    const instance = await openWithLease(redis.url);
    const { store, memory } = instance;
    await store.set(KEY, entryOf('old'), (await store.get(KEY)).ticket);
    const { ticket } = await store.get('21.T1/OTHER');
    await redis.restart();
    await expect.poll(() => instance.delivered.some(({ kind }) => kind === 'distrust')).toBe(true);
    await expect.poll(() => memory.peek(KEY)?.staleAt).toBe(0);
    await expect.poll(() => instance.hub.isLinked()).toBe(true);
    expect(await store.set('21.T1/OTHER', entryOf('begun before'), ticket)).toBe(false);
  });

  test('leaves entries fresh when no message was published while the connection was lost', async () => {
    const redis = await start();
    const instance = await openWithLease(redis.url);
    const { store, memory, commands } = instance;
    // Messages delivered during the start are irrelevant.
    instance.delivered.length = 0;
    await store.set(KEY, entryOf('old'), (await store.get(KEY)).ticket);
    await commands?.redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await expect.poll(() => instance.delivered.some(({ kind }) => kind === 'bans')).toBe(true);
    expect(instance.delivered.filter(({ kind }) => kind === 'distrust')).toEqual([]);
    expect(memory.peek(KEY)).toEqual(entryOf('old'));
  });

  test('marks stale the entries that changed while the message connection was lost', async () => {
    const redis = await start();
    const [one, other] = [await openWithLease(redis.url), await openWithLease(redis.url)];
    const { store, memory } = one;
    await store.set(KEY, entryOf('old'), (await store.get(KEY)).ticket);
    // The message is lost with the connection, so only the sequence number shows the change.
    const numberBefore = one.delivered.length;
    await one.commands?.redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await other.store.forget(KEY);
    await expect.poll(() => memory.peek(KEY)?.staleAt ?? 0).toBe(0);
    expect(one.delivered.length).toBeGreaterThan(numberBefore);
  });

  test('publishes the writes made during a Redis outage before it regains its lease', async () => {
    const redis = await start();
    const [one, other] = [await openWithLease(redis.url), await openWithLease(redis.url)];
    onTestFinished(() => {
      redis.thaw();
    });
    other.delivered.length = 0;
    redis.freeze();
    const written = one.store.forget(KEY);
    await expect.poll(() => one.hub.isLinked()).toBe(false);
    redis.thaw();
    await written;
    await expect.poll(() => other.delivered).toContainEqual({ kind: 'forget', key: KEY });
    await expect.poll(() => one.hub.isLinked()).toBe(true);
  });

  test('leaves the member list on close, so writers do not wait for a stopped instance', async () => {
    const redis = await start();
    const [one, other] = [await openWithLease(redis.url), await openLinked({ url: redis.url })];
    await other.close();
    const listed = await one.commands?.redis.zrange('test:members', '0', '-1');
    expect(listed?.filter((member) => !member.startsWith('run:'))).toHaveLength(1);
  });
});

describe('instance without Redis', () => {
  test('is linked even though it has no peers', async () => {
    const instance = openInstance();
    expect(instance.hub.isLinked()).toBe(true);
    await instance.close();
  });
});
