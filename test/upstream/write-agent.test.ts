import '../support/real-sockets.js';
import { once } from 'node:events';
import https from 'node:https';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createConnections } from '../../src/upstream/connections.js';

describe('write agent', () => {
  test('aborts pending TLS handshakes on close', async () => {
    const taken: Socket[] = [];
    const silent = createServer((socket) => taken.push(socket.on('error', () => undefined).resume()));
    await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening));
    onTestFinished(() => {
      for (const socket of taken) socket.destroy();
      silent.close();
    });
    const { port } = silent.address() as AddressInfo;
    const { writeAgent: agent, close } = createConnections({
      url: `https://127.0.0.1:${port}`,
      connections: 1,
    });
    const failed = new Promise<Error>((resolve) => {
      https.get({ host: '127.0.0.1', port, agent }).once('error', resolve);
    });
    await expect.poll(() => taken.length).toBe(1);
    const ended = once(taken[0] as Socket, 'close');
    await close();
    expect(await failed).toMatchObject({ code: 'ABORT_ERR' });
    await ended;
  });
});
