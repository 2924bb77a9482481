// Request framing: the upstream sees the request boundaries that this proxy sees, whatever a client sends.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type IncomingHttpHeaders, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startProxy } from '../support/proxy.js';
import { exchange, openSocket } from '../support/raw-socket.js';
import { PATH } from '../support/upstream.js';

interface Received {
  method: string;
  target: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Starts an upstream that accepts and records all requests. */
async function startUpstream(): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const { method = '', url: target = '', headers } = req;
      received.push({ method, target, headers, body: Buffer.concat(chunks).toString('latin1') });
      res.end('{"responseCode":1}');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

const SMUGGLED = 'DELETE /api/handles/21.T11998/victim HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n';
const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;

describe('proxy that forwards writes', () => {
  test.each(['PUT', 'POST', 'DELETE'])('preserves a single chunked body in a %s', async (method) => {
    const { url, received } = await startUpstream();
    const proxy = await startProxy({ UPSTREAM_URL: url, DELETION_HANDLES: 'true' });
    const head = `${method} ${PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const { answers } = await exchange(proxy.url, head + chunked(SMUGGLED));
    expect(answers.map(({ status }) => status)).toEqual([200]);
    await proxy.ask('/api/site');
    expect(received.map((request) => [request.method, request.target])).toEqual([
      [method, PATH],
      ['GET', '/api/site'],
    ]);
    expect(received[0]?.body).toBe(SMUGGLED);
  });

  test.each(['PUT', 'POST', 'DELETE'])('preserves an empty chunked body in a %s', async (method) => {
    const { url, received } = await startUpstream();
    const proxy = await startProxy({ UPSTREAM_URL: url, DELETION_HANDLES: 'true' });
    const head = `${method} ${PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const { answers } = await exchange(proxy.url, `${head}0\r\n\r\n`);
    expect(answers.map(({ status }) => status)).toEqual([200]);
    await proxy.ask('/api/site');
    expect(received.map((request) => [request.method, request.body])).toEqual([
      [method, ''],
      ['GET', ''],
    ]);
  });

  test.each([
    ['both a length and chunks', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n\r\n[ ]'],
    ['a coding other than chunked', 'Transfer-Encoding: gzip\r\n\r\n[]'],
  ])('rejects %s', async (_what, rest) => {
    const { url, received } = await startUpstream();
    const proxy = await startProxy({ UPSTREAM_URL: url });
    const { answers } = await exchange(proxy.url, `PUT ${PATH} HTTP/1.1\r\nHost: x\r\n${rest}`, {
      answers: 1,
    });
    expect(answers[0]?.status).toBe(400);
    expect(received).toEqual([]);
  });

  test('forwards a binary body unchanged when it has no Content-Type', async () => {
    const { url, received } = await startUpstream();
    const proxy = await startProxy({ UPSTREAM_URL: url });
    const bytes = Buffer.concat([
      Buffer.from(`PUT ${PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\n`),
      Buffer.from([0xff, 0x00, 0xc3, 0x28]),
    ]);
    await exchange(proxy.url, bytes);
    expect(Buffer.from(received[0]!.body, 'latin1')).toEqual(bytes.subarray(-4));
  });

  test('removes the origin from an absolute-form request line (RFC 9112 §3.2.2)', async () => {
    const { url, received } = await startUpstream();
    const proxy = await startProxy({ UPSTREAM_URL: url });
    const head = `PUT http://resolver.example${PATH}?index=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`;
    await exchange(proxy.url, `${head}Content-Length: 2\r\n\r\n[]`);
    expect(received[0]).toMatchObject({ target: `${PATH}?index=1`, body: '[]' });
  });

  test('answers Expect: 100-continue before the client sends the body', async () => {
    const { url, received } = await startUpstream();
    const proxy = await startProxy({ UPSTREAM_URL: url });
    const socket = await openSocket(proxy.url);
    const head = `PUT ${PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n`;
    socket.write(`${head}Expect: 100-continue\r\n\r\n`);
    const [interim] = (await once(socket, 'data')) as [Buffer];
    expect(interim.toString()).toMatch(/^HTTP\/1\.1 100 /);
    socket.write('[]');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
    expect(received[0]).toMatchObject({ body: '[]' });
    expect(received[0]?.headers).not.toHaveProperty('expect');
  });

  test('keeps the upstream connection alive for successive writes', async () => {
    const { url, received } = await startUpstream();
    const proxy = await startProxy({ UPSTREAM_URL: url });
    for (let count = 0; count < 3; count++) await proxy.ask(PATH, { method: 'PUT', body: '[]' });
    expect(received.map(({ headers }) => headers.connection)).toEqual(Array(3).fill('keep-alive'));
  });
});
