// Failures of real upstream connections: each maps to an error, with a retry only where a retry helps.
import type { Diagnosis } from '../../src/errors.js';
import { once } from 'node:events';
import type net from 'node:net';
import { describe, expect, test } from 'vitest';
import { exchange } from '../../src/upstream/exchange.js';
import { listenHttp, listenRaw, NOT_FOUND, openClient, openConnections } from './upstream-loopback.js';
import { freePort } from '../support/free-port.js';

const JSON_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
const NOT_FOUND_REPLY = `HTTP/1.1 404 Not Found\r\nContent-Length: ${NOT_FOUND.length}\r\n\r\n${NOT_FOUND}`;

/** Sends each text in a separate packet. */
async function sendInTurn(socket: net.Socket, texts: readonly string[]): Promise<void> {
  socket.setNoDelay(true);
  for (const text of texts) await new Promise((sent) => socket.write(text, () => setImmediate(sent)));
}

describe('upstream client', () => {
  test('reports a closed port as unreachable', async () => {
    const { resolve } = openClient({ url: `http://127.0.0.1:${await freePort()}` });
    await expect(resolve()).rejects.toMatchObject({
      code: 'UPSTREAM_UNREACHABLE',
      diagnosis: expect.objectContaining({
        cause: expect.stringContaining('ECONNREFUSED') as string,
      }) as Diagnosis,
    });
  });

  test('reports an unknown host name as unreachable', async () => {
    const { resolve } = openClient({ url: 'http://no-such-host.invalid' });
    await expect(resolve()).rejects.toMatchObject({
      code: 'UPSTREAM_UNREACHABLE',
      diagnosis: expect.objectContaining({
        cause: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/) as string,
      }) as Diagnosis,
    });
  });

  test('retries once on a new connection after a reset before the headers', async () => {
    const server = await listenRaw((socket) => socket.resetAndDestroy());
    const { resolve } = openClient(server);
    await expect(resolve()).rejects.toMatchObject({ code: 'UPSTREAM_UNREACHABLE', status: 502 });
    expect(server.connections()).toBe(2);
  });

  test('retries once after a truncated body, which is never accepted as complete', async () => {
    const server = await listenRaw((socket) =>
      socket.end(`${JSON_HEAD}Content-Length: 500\r\n\r\n{"responseCode":1`),
    );
    const { resolve } = openClient(server);
    await expect(resolve()).rejects.toMatchObject({ code: 'UPSTREAM_UNREACHABLE' });
    expect(server.connections()).toBe(2);
  });

  test('times out without a retry when the headers are late', async () => {
    const server = await listenRaw(() => undefined);
    const { resolve } = openClient(server, { timeoutMs: 60 });
    await expect(resolve()).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT', status: 504 });
    // On a busy machine the server may accept the connection late.
    await expect.poll(server.connections).toBe(1);
  });

  test('times out without a retry, and closes the connection, when the body is late', async () => {
    let closed: Promise<unknown> | undefined;
    const server = await listenRaw((socket) => {
      closed = once(socket, 'close');
      socket.write(`${JSON_HEAD}Content-Length: 500\r\n\r\n{`);
    });
    const { resolve } = openClient(server, { timeoutMs: 60 });
    await expect(resolve()).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
    await expect.poll(server.connections).toBe(1);
    await expect.poll(() => closed).toBeDefined();
    await closed;
  });

  test('aborts early without a retry, and closes the connection, when the body exceeds the limit', async () => {
    let sent = 0;
    let closed: Promise<unknown> | undefined;
    const server = await listenHttp((_request, response) => {
      closed = once(response, 'close');
      const more = (): void => {
        while (!response.destroyed && response.write(' '.repeat(10_000))) sent += 10_000;
      };
      response.on('drain', more);
      more();
    });
    const { resolve } = openClient(server, { maxRecordBytes: 50_000 });
    await expect(resolve()).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      diagnosis: expect.objectContaining({
        cause: expect.stringContaining('more than 50000 bytes') as string,
      }) as Diagnosis,
    });
    await closed;
    expect(sent).toBeLessThan(20_000_000);
    expect(server.received()).toBe('GET /api/handles/21.T1/a\n');
  });

  test('reports non-HTTP bytes as an invalid response', async () => {
    const server = await listenRaw((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'));
    const { resolve } = openClient(server);
    await expect(resolve()).rejects.toMatchObject({ code: 'UPSTREAM_INVALID_RESPONSE' });
    expect(server.connections()).toBe(1);
  });

  test('reports an unrequested protocol switch immediately as an invalid response', async () => {
    const head = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n';
    const closed: Promise<unknown>[] = [];
    const server = await listenRaw((socket) => {
      closed.push(once(socket, 'close'));
      socket.write(head);
    });
    const { resolve } = openClient(server);
    await expect(resolve()).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      diagnosis: expect.objectContaining({
        cause: expect.stringContaining('HTTP 101') as string,
      }) as Diagnosis,
    });
    await Promise.all(closed);
    expect(server.connections()).toBe(1);
  });

  test.each([
    ['before the response', ['HTTP/1.1 100 Continue\r\n\r\n', NOT_FOUND_REPLY]],
    ['in the same packet as the response', [`HTTP/1.1 100 Continue\r\n\r\n${NOT_FOUND_REPLY}`]],
    [
      'twice, with headers',
      ['HTTP/1.1 100 \r\nServer: x\r\n\r\n', `HTTP/1.1 100 Go\r\n\r\n${NOT_FOUND_REPLY}`],
    ],
  ])('ignores an unrequested 100 Continue %s', async (_when, packets) => {
    const server = await listenRaw((socket) => void sendInTurn(socket, packets));
    const { resolve } = openClient(server);
    for (let time = 0; time < 2; time++) expect(await resolve()).toEqual({ kind: 'not-found' });
    expect(server.connections()).toBe(1);
  });

  test('keeps the text of a 100 Continue in a body', async () => {
    const text = 'HTTP/1.1 100 Continue\r\n\r\n';
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${2 * text.length}\r\n\r\n`;
    const server = await listenRaw((socket) => void sendInTurn(socket, [text + head, text, text]));
    const { dispatcher } = openConnections({ url: server.url, connections: 1 });
    const request = { origin: server.url, method: 'PUT' as const, path: '/', headers: [], body: '[]' };
    const { body } = await exchange(dispatcher, request, { timeoutMs: 5000, maxBodyBytes: 1000 });
    expect(body).toBe(text + text);
  });

  test('retries once on a new connection when a kept-alive connection was dropped', async () => {
    const answeredOn = new Set<net.Socket>();
    const server = await listenRaw((socket) => {
      if (answeredOn.has(socket)) socket.resetAndDestroy();
      else socket.write(NOT_FOUND_REPLY);
      answeredOn.add(socket);
    });
    const { resolve } = openClient(server);
    expect(await resolve()).toEqual({ kind: 'not-found' });
    expect(await resolve()).toEqual({ kind: 'not-found' });
    expect(server.connections()).toBe(2);
  });

  test('keeps the connection alive for the next request, except after a retry', async () => {
    const closes: string[] = [];
    let cuts = 2;
    const server = await listenHttp((request, response) => {
      closes.push(request.headers.connection ?? '');
      if (request.headers.connection === 'keep-alive' && cuts-- > 0) request.socket.resetAndDestroy();
      else response.writeHead(404).end(NOT_FOUND);
    });
    const { resolve } = openClient(server);
    for (let time = 0; time < 4; time++) await resolve();
    expect(closes).toEqual(['keep-alive', 'close', 'keep-alive', 'close', 'keep-alive', 'keep-alive']);
    expect(server.connections()).toBe(5);
  });
});
