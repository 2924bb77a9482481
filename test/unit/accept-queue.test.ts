// The Linux proc file system shows the number of unaccepted connections.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type AddressInfo, type Server, connect, createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { waitingConnections } from '../../src/server/drain.js';

async function listen(host: string, at = 0): Promise<{ server: Server; port: number }> {
  const server = createServer().listen(at, host);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { server, port: (server.address() as AddressInfo).port };
}

/** Completes loopback connections in the kernel before Node can accept them. */
async function connectTo(port: number, host: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const client = connect(port, host);
    onTestFinished(() => void client.destroy());
  }
  await new Promise<void>((resolve) => {
    process.nextTick(resolve);
  });
}

describe('listener accept queue', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.1'],
    ['::1', '::1'],
    ['::', '127.0.0.1'],
  ])('counts pending connections at %s until they are accepted', async (host, to) => {
    const { server, port } = await listen(host);
    expect(waitingConnections(server)).toBe(0);
    let accepted = 0;
    server.on('connection', () => accepted++);
    await connectTo(port, to, 3);
    expect(waitingConnections(server)).toBe(3);
    await expect.poll(() => accepted).toBe(3);
    expect(waitingConnections(server)).toBe(0);
  });

  test('separates the counts of a hundred listeners', async () => {
    const others = await Promise.all(Array.from({ length: 100 }, () => listen('127.0.0.1')));
    await Promise.all(others.map(({ port }) => connectTo(port, '127.0.0.1', 1)));
    expect(others.map(({ server }) => waitingConnections(server))).toEqual(others.map(() => 1));
  });

  test('excludes connections to a different listener on the same port', async () => {
    const { server, port } = await listen('127.0.0.1');
    const { server: other } = await listen('127.0.0.2', port);
    await connectTo(port, '127.0.0.2', 2);
    expect([waitingConnections(server), waitingConnections(other)]).toEqual([0, 2]);
  });
});
