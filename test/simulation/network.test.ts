// Simulated connections: delivery, order, and the loss of either end.
import { beforeEach, describe, expect, test } from 'vitest';
import type { Process } from './process.js';
import type { RedisCommands, RedisDialer, RedisSubscription } from './redis-client.js';
import type { RedisServer } from './redis.js';
import { Simulation } from './simulation.js';

describe('connection to a simulated Redis', () => {
  let world: Simulation;
  let process: Process;
  let redis: RedisServer;
  let dial: RedisDialer;
  let commands: RedisCommands;
  let messages: RedisSubscription;
  let heard: string[];
  let closed: string[];

  beforeEach(async () => {
    world = await Simulation.create(3);
    process = world.process('a');
    redis = world.redis('redis');
    dial = world.dialer(process, () => redis);
    await open();
  });

  async function open(): Promise<void> {
    heard = [];
    closed = [];
    commands = await world.scheduler.settle(dial.commands());
    messages = await world.scheduler.settle(dial.subscription());
    messages.onMessage = (channel, text) => heard.push(`${channel} ${text}`);
    commands.onClose = () => closed.push('commands');
    messages.onClose = () => closed.push('messages');
    await world.scheduler.settle(messages.subscribe(['news', 'ü']));
  }

  const ask = (name: string, ...args: string[]): Promise<unknown> =>
    world.scheduler.settle(commands.command(name, ...args));

  test('returns replies to commands and scripts, including binary values', async () => {
    expect(await ask('SET', 'k', 'ü')).toBe('OK');
    expect(await ask('GET', 'k')).toEqual(Buffer.from('ü'));
    const source = "return { redis.call('GET', KEYS[1]), ARGV[1], 5 }";
    const answer = await world.scheduler.settle(commands.script(source, ['k'], [new Uint8Array([255])]));
    expect(answer).toEqual([Buffer.from('ü'), Buffer.from([255]), 5]);
    await expect(ask('HGET', 'k', 'f')).rejects.toThrow('WRONGTYPE');
  });

  test('delivers messages in order, and a reply only after earlier messages', async () => {
    for (let number = 0; number < 50; number++) void commands.command('PUBLISH', 'news', number);
    await ask('PUBLISH', 'ü', 'ö');
    await world.scheduler.settle(messages.ping());
    expect(heard).toEqual([...Array.from({ length: 50 }, (_, number) => `news ${number}`), 'ü ö']);
  });

  test('can lose a message without closing', async () => {
    redis.losesMessage = (_, __, text) => text === '2';
    for (const number of [1, 2, 3]) await ask('PUBLISH', 'news', String(number));
    await world.scheduler.settle(messages.ping());
    expect(heard).toEqual(['news 1', 'news 3']);
    expect(closed).toEqual([]);
  });

  test('delivers a pending command and its reply after a network partition', async () => {
    const line = world.network.line(process, redis);
    line.cut();
    const answer = commands.command('PUBLISH', 'news', 'late');
    let isAnswered = false;
    void answer.then(() => (isAnswered = true));
    await world.scheduler.runFor(10_000);
    expect(isAnswered).toBe(false);
    line.mend();
    expect(await world.scheduler.settle(answer)).toBe(1);
  });

  test('waits while its server is frozen', async () => {
    redis.host.pause();
    const answer = commands.command('PING');
    const again = dial.commands();
    await expect(world.scheduler.settle(answer, 1000)).rejects.toThrow('not settled');
    expect(await world.scheduler.settle(again)).toBeDefined();
    redis.host.resume();
    expect(await world.scheduler.settle(answer)).toBe('PONG');
  });

  test('closes when its server is killed, which then restarts without data', async () => {
    await ask('SET', 'k', 'v');
    const { runId } = redis;
    const pending = commands.command('GET', 'k');
    redis.host.kill();
    await expect(world.scheduler.settle(pending)).rejects.toThrow('closed');
    await world.scheduler.runFor(100);
    expect(closed.toSorted()).toEqual(['commands', 'messages']);
    await expect(world.scheduler.settle(dial.commands())).rejects.toThrow('ECONNREFUSED');
    redis.restart();
    await open();
    expect(await ask('GET', 'k')).toBeNull();
    expect(redis.runId).not.toBe(runId);
  });

  test('returns old data after the server was restarted from an old dump', async () => {
    await ask('SET', 'k', 'old');
    const dump = redis.dump();
    await ask('SET', 'k', 'new');
    redis.host.kill();
    redis.restart(dump);
    await open();
    expect(await ask('GET', 'k')).toEqual(Buffer.from('old'));
  });

  test('returns the replicated data after a failover', async () => {
    await ask('SET', 'k', 'old', 'PX', '60000');
    await world.scheduler.runFor(1000);
    await ask('SET', 'k', 'new');
    const old = redis;
    redis = world.redis('replica', {}, old.replica(500));
    old.host.kill();
    await open();
    expect(await ask('GET', 'k')).toEqual(Buffer.from('old'));
    expect(redis.runId).not.toBe(old.runId);
    expect(await ask('PTTL', 'k')).toBeLessThan(60_000);
  });

  test('seems open to the client until its next send if only the server has closed it', async () => {
    for (const connection of world.network.connections(process)) connection.forgetAtServer();
    await world.scheduler.runFor(1000);
    expect(closed).toEqual([]);
    await expect(world.scheduler.settle(messages.ping())).rejects.toThrow('closed');
    expect(closed).toEqual(['messages']);
  });

  test('closes for both sides on a reset', async () => {
    const pending = commands.command('GET', 'k');
    for (const connection of world.network.connections()) connection.reset();
    await expect(world.scheduler.settle(pending)).rejects.toThrow('closed');
    await world.scheduler.runFor(100);
    expect(closed.toSorted()).toEqual(['commands', 'messages']);
    expect(world.network.connections()).toEqual([]);
  });

  test('closes at the server when the client process is killed', async () => {
    process.kill();
    await world.scheduler.runFor(100);
    expect(world.network.connections()).toEqual([]);
    expect(redis.subscriptions.publish('news', 'text', false)).toBe(0);
  });

  test('finds no key that has expired on the clock of the server', async () => {
    await ask('SET', 'k', 'v', 'PX', '500');
    await world.scheduler.runFor(300);
    expect(await ask('EXISTS', 'k')).toBe(1);
    redis.host.stepWallClock(1000);
    expect(await ask('EXISTS', 'k')).toBe(0);
  });

  test('rejects writes to a server that was demoted to a replica', async () => {
    redis.isReadOnly = true;
    await expect(ask('SET', 'k', 'v')).rejects.toThrow('READONLY');
    expect(await ask('GET', 'k')).toBeNull();
  });

  test('fails the test when it sends a command that is not simulated', async () => {
    void commands.command('PFADD', 'k');
    await expect(world.scheduler.runFor(100)).rejects.toThrow('does not have: the command PFADD');
  });
});
