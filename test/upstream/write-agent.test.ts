import '../support/real-sockets.js';
import https from 'node:https';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { TlsAgent } from '../../src/upstream/connections.js';

describe('write agent', () => {
  test('aborts pending TLS handshakes on close', async () => {
    const taken: Socket[] = [];
    const silent = createServer((socket) => taken.push(socket));
    await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening));
    onTestFinished(() => {
      for (const socket of taken) socket.destroy();
      silent.close();
    });
    const agent = new TlsAgent({ keepAlive: true }, {});
    const { port } = silent.address() as AddressInfo;
    const failed = new Promise<Error>((resolve) => {
      https.get({ host: '127.0.0.1', port, agent }).once('error', resolve);
    });
    await expect.poll(() => taken.length).toBe(1);
    agent.destroy();
    expect((await failed).message).toBe('the agent is closed');
  });
});
