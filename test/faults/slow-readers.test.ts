// Slow readers: they hold neither an upstream permit nor memory for long.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setInterval as every } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { startProxy } from '../support/proxy.js';
import { openSocket } from '../support/raw-socket.js';

const LIST = 'GET /api/handles?prefix=21.T11998 HTTP/1.1\r\nHost: x\r\n\r\n';
const SITE = '/api/site';
const MIB = 1024 * 1024;
const SIZE = 64 * MIB;

/** Interval between the pieces of a response in ms. Undefined sends 64 MiB at the client's reading speed. */
let piecesEveryMs: number | undefined;
const PIECES = 20;

const upstream = createServer((req, res) => {
  if (req.url === SITE) res.end('{}');
  else if (piecesEveryMs === undefined) res.end(Buffer.alloc(SIZE, ' '));
  else void sendPieces(res, piecesEveryMs);
}).listen(0, '127.0.0.1');
await once(upstream, 'listening');
afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
});

async function sendPieces(res: ServerResponse, everyMs: number): Promise<void> {
  let left = PIECES;
  res.flushHeaders();
  const piece = 'x'.repeat(100);
  for await (const next of every(everyMs, piece)) {
    res.write(next);
    if (--left === 0) break;
  }
  res.end('the end');
}

const env = {
  UPSTREAM_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
  UPSTREAM_CONCURRENCY: '1',
  ...fixed({ upstream: { queueTimeoutMs: 600 } }),
  UPSTREAM_WRITE_TIMEOUT: '5s',
};

/** Requests the list and reads only its start. */
async function beginToRead(url: string): Promise<Socket> {
  const socket = await openSocket(url);
  socket.write(LIST);
  await once(socket, 'readable');
  return socket;
}

describe('slow readers', () => {
  test('are disconnected when they read nothing while other requests wait for the permit they hold', async () => {
    const proxy = await startProxy({
      ...env,
      ...fixed({ upstream: { queueTimeoutMs: 2000 } }),
      UPSTREAM_WRITE_TIMEOUT: '90s',
    });
    const idle = await beginToRead(proxy.url);
    // On a busy machine, data of the list may still be in transit, so the first request may not preempt it.
    await expect.poll(async () => (await proxy.ask(SITE)).status, { timeout: 60_000 }).toBe(200);
    await expect.poll(() => proxy.connections()).toBe(0);
    idle.destroy();
  });

  test('stay connected while they keep reading, however long the response takes', async () => {
    piecesEveryMs = 60;
    const proxy = await startProxy(env);
    const list = proxy.ask('/api/handles?prefix=21.T11998');
    const others = await Promise.all([proxy.ask(SITE), proxy.ask(SITE)]);
    expect(others.map(({ status }) => status)).toEqual([503, 503]);
    expect((await list).text).toBe('x'.repeat(100 * PIECES) + 'the end');
    piecesEveryMs = undefined;
  });

  test('are disconnected after the timeout for a response', async () => {
    const demo = await startDemoServer();
    demo.put('21.T11998/large', [textValue(1, 'DESC', 'x'.repeat(12 * MIB))]);
    const proxy = await startProxy({
      UPSTREAM_URL: demo.url,
      UPSTREAM_MAX_RECORD_SIZE: '256MiB',
      ...fixed({ server: { responseTimeoutMs: 300 } }),
    });
    const socket = await openSocket(proxy.url);
    socket.write('GET /api/handles/21.T11998/large HTTP/1.1\r\nHost: x\r\n\r\n');
    let isOpen = true;
    socket.once('close', () => (isOpen = false));
    let taken = 0;
    socket.on('data', (piece: Buffer) => {
      taken += piece.length;
      socket.pause();
      setTimeout(() => socket.resume(), 20);
    });
    await expect.poll(() => isOpen).toBe(false);
    expect(taken).toBeLessThan(12 * MIB);
  });
});
