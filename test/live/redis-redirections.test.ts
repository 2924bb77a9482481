// Redirections of a Redis Cluster that moves a slot, from a node that sends them on demand.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openRedis } from '../../src/cache/redis/connections.js';

const OK = '+OK\r\n';

/** Starts the only node of a cluster. It sends `redirections` to scripts in their order, and then OK. */
async function startNode(redirections: string[]): Promise<string> {
  const node = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (requests) => {
      for (const request of requests
        .toString()
        .split(/^\*\d+\r\n/m)
        .slice(1))
        socket.write(reply(request));
    });
  }).listen(0, '127.0.0.1');
  await once(node, 'listening');
  onTestFinished(() => {
    node.close();
  });
  const { port } = node.address() as AddressInfo;
  const slots = `*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:${port}\r\n`;
  const ofCluster = (request: string): string =>
    /slots/i.test(request) ? slots : '$16\r\ncluster_state:ok\r\n';
  function reply(request: string): string {
    const [, name = ''] = /^\$\d+\r\n(\w+)/.exec(request) ?? [];
    if (name === 'cluster') return ofCluster(request);
    if (name === 'info') return '$9\r\nloading:0\r\n';
    if (name !== 'eval') return OK;
    const error = redirections.shift();
    return error === undefined ? OK : `-${error.replace('{node}', `127.0.0.1:${port}`)}\r\n`;
  }
  return `redis://127.0.0.1:${port}`;
}

async function openCluster(redirections: string[]) {
  const cluster = [await startNode(redirections)];
  const { commands } = openRedis({ cluster, commandTimeoutMs: 2000 });
  onTestFinished(() => {
    commands.disconnect();
  });
  await once(commands, 'ready');
  return commands;
}

test('a script is sent to the new node of its slot, while the keys of the slot move', async () => {
  const commands = await openCluster(['TRYAGAIN', 'ASK 1 {node}']);
  expect(await commands.eval('', 1, 'key')).toBe('OK');
});

test.each([1, 2])(
  'scripts fail, and leave the process running, when the last redirection is an ASK (%i at a time)',
  async (count) => {
    const rounds = ['TRYAGAIN', 'TRYAGAIN', 'TRYAGAIN', 'ASK 1 {node}'];
    const commands = await openCluster(rounds.flatMap((error) => Array<string>(count).fill(error)));
    const scripts = Array.from({ length: count }, () => commands.eval('', 1, 'key'));
    for (const script of scripts) await expect(script).rejects.toThrow('redirections');
    expect(await commands.eval('', 1, 'key')).toBe('OK');
  },
);
