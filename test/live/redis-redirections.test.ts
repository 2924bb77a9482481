// Redirections and lost channels of a Redis Cluster that moves a slot, from nodes that send them on demand.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { RedisCommands } from '../../src/cache/redis/commands.js';
import { openRedis, openSubscription } from '../../src/cache/redis/connections.js';
import { Subscriptions } from '../../src/cache/redis/subscriptions.js';

const OK = '+OK\r\n';
/** Longer than a test that waits for no timeout. */
const PATIENT_MS = 5000;

const bulkReply = (text: string): string => `$${text.length}\r\n${text}\r\n`;
const arrayReply = (...replies: string[]): string => `*${replies.length}\r\n${replies.join('')}`;
const channelReply = (kind: string, channel: string): string =>
  arrayReply(bulkReply(kind), bulkReply(channel), ':1\r\n');
const infoReply = (...lines: string[]): string => bulkReply(['loading:0', ...lines].join('\r\n'));

/** Replies by command; OK to others. */
type Replies = Record<string, (argument: string) => string>;

/** Starts a node that holds all slots of a cluster, unless `slotsAt` names the port of another. */
async function startNode(replies: Replies, node: { slotsAt?: number } = {}): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (requests) => {
      for (const request of requests
        .toString()
        .split(/^\*\d+\r\n/m)
        .slice(1)) {
        const [, name = '', argument = ''] = /^\$\d+\r\n(\w+)\r\n(?:\$\d+\r\n([^\r]*))?/.exec(request) ?? [];
        socket.write(all[name]?.(argument) ?? OK);
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const slots = (): string =>
    arrayReply(
      arrayReply(':0\r\n', ':16383\r\n', arrayReply(bulkReply('127.0.0.1'), `:${node.slotsAt ?? port}\r\n`)),
    );
  const all: Replies = {
    cluster: (about) => (/slots/i.test(about) ? slots() : bulkReply('cluster_state:ok')),
    info: () => infoReply('redis_version:7.0.0', 'role:master', `run_id:${port}`, 'master_replid:1'),
    ssubscribe: (channel) => channelReply('ssubscribe', channel),
    ...replies,
  };
  return port;
}

const nodeUrl = (port: number): string => `redis://127.0.0.1:${port}`;

async function openFakeCluster(replies: Replies) {
  const cluster = [nodeUrl(await startNode(replies))];
  const connections = openRedis({ cluster, commandTimeoutMs: PATIENT_MS });
  onTestFinished(() => {
    connections.commands.disconnect();
  });
  await once(connections.commands, 'ready');
  return connections;
}

/** Opens a cluster whose node sends these errors to scripts in their order, and then OK. */
async function openRedirecting(errors: string[]) {
  let port = 0;
  const connections = await openFakeCluster({
    eval() {
      const error = errors.shift();
      return error === undefined ? OK : `-${error.replace('{node}', `127.0.0.1:${port}`)}\r\n`;
    },
  });
  port = connections.masters()[0]?.client.options.port ?? 0;
  return connections.commands;
}

/** Subscribes to two channels of a cluster. */
async function subscribeToTwo(replies: Replies) {
  const connections = await openFakeCluster(replies);
  const [master] = connections.masters();
  const onLost = vi.fn();
  const watch = (opened: { on: (event: 'error', ignore: () => void) => unknown }): void => {
    opened.on('error', () => undefined);
  };
  const about = { master: master!, channels: ['a', 'b'], watch };
  const subscription = await openSubscription(connections, about, { onMessage: () => undefined, onLost });
  return { subscription, onLost };
}

test('a script is sent to the new node of its slot, while the keys of the slot move', async () => {
  const commands = await openRedirecting(['TRYAGAIN', 'ASK 1 {node}']);
  expect(await commands.eval('', 1, 'key')).toBe('OK');
});

test.each([1, 2])(
  'scripts fail, and leave the process running, when the last redirection is an ASK (%i at a time)',
  async (count) => {
    const rounds = ['TRYAGAIN', 'TRYAGAIN', 'TRYAGAIN', 'ASK 1 {node}'];
    const commands = await openRedirecting(rounds.flatMap((error) => Array<string>(count).fill(error)));
    const scripts = Array.from({ length: count }, () => commands.eval('', 1, 'key'));
    for (const script of scripts) await expect(script).rejects.toThrow('redirections');
    expect(await commands.eval('', 1, 'key')).toBe('OK');
  },
);

test.each(['a', 'b'])('a subscription fails without a timeout when channel %s has moved', async (moved) => {
  const ssubscribe = (channel: string): string =>
    channel === moved ? '-MOVED 1 127.0.0.1:1\r\n' : channelReply('ssubscribe', channel);
  await expect(subscribeToTwo({ ssubscribe })).rejects.toThrow('MOVED');
});

test('a channel that moves while a PING is in flight is noticed', async () => {
  const ping = (argument: string): string =>
    channelReply('sunsubscribe', 'a') + arrayReply(bulkReply('pong'), bulkReply(argument));
  const { subscription, onLost } = await subscribeToTwo({ ping });
  await expect(subscription.ping()).rejects.toThrow('channel');
  await vi.waitFor(() => {
    expect(onLost).toHaveBeenCalledOnce();
  });
});

test('the loss of many channels, as in a failover, is one loss and no warning of Node.js', async () => {
  const warned = vi.fn();
  process.on('warning', warned);
  onTestFinished(() => void process.off('warning', warned));
  const { subscription, onLost } = await subscribeToTwo({
    ping: () => channelReply('sunsubscribe', 'a').repeat(20),
  });
  await expect(subscription.ping()).rejects.toThrow();
  await vi.waitFor(() => {
    expect(onLost).toHaveBeenCalledOnce();
  });
  expect(warned).not.toHaveBeenCalled();
});

test('a message connection that loses no channel replies to a PING', async () => {
  const ping = (argument: string): string => arrayReply(bulkReply('pong'), bulkReply(argument));
  const { subscription, onLost } = await subscribeToTwo({ ping });
  await subscription.ping();
  expect(onLost).not.toHaveBeenCalled();
  subscription.close();
});

test('subscriptions are opened at the node to which a slot has just moved', async () => {
  const target = await startNode({});
  const former: { slotsAt?: number } = {};
  const port = await startNode({ ssubscribe: () => `-MOVED 1 127.0.0.1:${target}\r\n` }, former);
  const cluster = [nodeUrl(port)];
  const commands = new RedisCommands({ cluster, commandTimeoutMs: PATIENT_MS, keyPrefix: 't:' });
  onTestFinished(() => commands.close());
  await vi.waitFor(() => {
    expect(commands.isConnected()).toBe(true);
  });
  former.slotsAt = target;
  const subscriptions = new Subscriptions(commands, 'me', () => undefined);
  await subscriptions.open();
  expect(subscriptions.isComplete()).toBe(true);
  subscriptions.close();
});
