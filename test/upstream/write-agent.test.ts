import '../support/real-sockets.js';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createConnections } from '../../src/upstream/connections.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

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

  test('keeps no connection in memory that has ended', async () => {
    const server = http.createServer((_, res) => res.end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { writeAgent: agent, close } = createConnections({
      url: `http://127.0.0.1:${port}`,
      connections: 1,
    });
    onTestFinished(close);
    const ended: WeakRef<Socket>[] = [];
    async function send(): Promise<void> {
      const [answer] = (await once(
        http.get({ host: '127.0.0.1', port, agent, headers: { Connection: 'close' } }),
        'response',
      )) as [http.IncomingMessage];
      ended.push(new WeakRef(answer.socket));
      const closed = once(answer.socket, 'close');
      answer.resume();
      await closed;
    }
    for (let times = 0; times < 3; times++) await send();
    const left = (): number => {
      collectGarbage();
      return ended.filter((socket) => socket.deref() !== undefined).length;
    };
    await expect.poll(left).toBe(0);
  });
});
