// Clients that send on after their response: the proxy discards a bounded part of it, then closes the connection.
import '../support/real-sockets.js';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Context } from '../../src/context.js';
import { textValue } from '../../src/dev-server/seed.js';
import { createMetrics } from '../../src/observe/metrics.js';
import { createAdminServer } from '../../src/server/http-server.js';
import { createAdminAlone } from '../support/admin.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { openNativeSocket, readToEnd } from '../support/native-client.js';
import { nativeRequest } from '../support/native-messages.js';
import { partial } from '../support/partial.js';
import { startProxy } from '../support/proxy.js';
import { exchangeOn, openSocket } from '../support/raw-socket.js';

const HANDLE = '21.T11998/page';
const PATH = `/api/handles/${HANDLE}`;
const MIB = 1024 * 1024;
/** More than the proxy reads after a response, and both kernels buffer. */
const FLOOD_BYTES = 128 * MIB;

const demo = await startDemoServer();
const env = { UPSTREAM_URL: demo.url };

function headOf(method: string, path: string, headers: Record<string, string> = {}): string {
  const lines = Object.entries({ Host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}
const CHUNKED = { 'Transfer-Encoding': 'chunked' };
const CHUNK = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 'x'), Buffer.from('\r\n')]);
const RAW = Buffer.alloc(65_536);
const length = (bytes: number) => ({ 'Content-Length': String(bytes) });

/** Sends the head and then pieces until the connection is closed; returns whether it was, before all was sent. */
async function flood(socket: Socket, head: string | Buffer, piece: Buffer): Promise<boolean> {
  socket.resume().write(head);
  for (let sent = 0; sent < FLOOD_BYTES && !socket.destroyed; sent += piece.length) {
    if (!socket.write(piece))
      await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve));
  }
  return socket.destroyed;
}

describe('the rest of a request after its response', () => {
  test.each([
    ['a body in chunks, after 413', headOf('PUT', PATH, { ...WRITE_HEADERS, ...CHUNKED }), CHUNK],
    ['a body with its length, after 413', headOf('PUT', PATH, { ...WRITE_HEADERS, ...length(1e12) }), RAW],
    ['the body of a GET that is a hit', headOf('GET', PATH, CHUNKED), CHUNK],
    ['a body for an unknown path', headOf('POST', '/api/unknown', CHUNKED), CHUNK],
    ['a body after an unknown expectation', headOf('PUT', PATH, { ...CHUNKED, Expect: 'x' }), CHUNK],
    ['a body after an invalid head', headOf('PUT', PATH, { ...length(1e12), Host: '/' }), RAW],
    ['garbage after a parse error', 'GET\r\n', RAW],
  ])('is not read to the end: %s', async (_what, head, piece) => {
    const proxy = await startProxy(env);
    await proxy.ask(PATH);
    expect(await flood(await openSocket(proxy.url), head, piece)).toBe(true);
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  test.each([
    ['CONNECT', headOf('CONNECT', 'x:1')],
    ['a parse error', 'GET\r\n'],
  ])('is not read to the end after %s behind a response that waits', async (_what, refused) => {
    const proxy = await startProxy(env);
    demo.hold.holdReplies('GET');
    const isClosed = await flood(await openSocket(proxy.url), headOf('GET', `${PATH}-held`) + refused, RAW);
    demo.hold.sendHeld('GET');
    expect(isClosed).toBe(true);
  });

  test('is not read to the end after 408, whose client sends on', async () => {
    const proxy = await startProxy({
      ...env,
      ...fixed({ server: { headersTimeoutMs: 500, requestTimeoutMs: 500 } }),
    });
    const socket = await openSocket(proxy.url);
    const { status } = await exchangeOn(socket, headOf('PUT', PATH, { ...WRITE_HEADERS, ...CHUNKED }));
    expect(status).toBe(408);
    expect(await flood(socket, CHUNK, CHUNK)).toBe(true);
  });

  test('is not waited for after 408 beyond the time for a response', async () => {
    const limits = { headersTimeoutMs: 500, requestTimeoutMs: 500, responseTimeoutMs: 500 };
    const proxy = await startProxy({ ...env, ...fixed({ server: limits }) });
    const socket = await openNativeSocket(Number(new URL(proxy.url).port));
    const closed = once(socket, 'close');
    socket.resume().write(headOf('PUT', PATH, { ...WRITE_HEADERS, ...CHUNKED }));
    await once(socket, 'end');
    await expect.poll(proxy.connections).toBe(0);
    socket.end();
    await closed;
  });

  test('is not waited for after a parse error beyond the time for a request', async () => {
    const proxy = await startProxy({
      ...env,
      ...fixed({ server: { headersTimeoutMs: 500, requestTimeoutMs: 500 } }),
    });
    const socket = await openNativeSocket(Number(new URL(proxy.url).port));
    const closed = once(socket, 'close');
    socket.resume().write('GET\r\n');
    await once(socket, 'end');
    await expect.poll(proxy.connections).toBe(0);
    socket.end();
    await closed;
  });

  test('is not read to the end by the admin listener', async () => {
    const metrics = createMetrics();
    const server = createAdminServer(createAdminAlone({ metrics }), partial<Context>({ metrics }));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const socket = await openSocket(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(await flood(socket, headOf('GET', '/healthz', CHUNKED), CHUNK)).toBe(true);
  });

  test.each([
    ['after the answer', HANDLE],
    ['while the answer waits', `${HANDLE}-native`],
  ])('is not read to the end by the native TCP listener, %s', async (_what, handle) => {
    const proxy = await startProxy({ ...env, NATIVE_TCP_PORT: '0' });
    await proxy.ask(PATH);
    demo.hold.holdReplies('GET');
    const isClosed = await flood(await openNativeSocket(proxy.tcpPort), nativeRequest(handle), RAW);
    demo.hold.sendHeld('GET');
    expect(isClosed).toBe(true);
  });
});

describe('a client that reads nothing before it has sent its body', () => {
  const SIZES = { ...env, HTTP_MAX_BODY_SIZE: '4MiB' };
  const BODY = Buffer.alloc(12 * MIB, 'x');

  test.each(['keep-alive', 'close'])('still gets its 413 (Connection: %s)', async (connection) => {
    const proxy = await startProxy(SIZES);
    const socket = await openSocket(proxy.url);
    socket.pause();
    const head = headOf('PUT', PATH, { ...WRITE_HEADERS, ...length(BODY.length), Connection: connection });
    const failure = await new Promise((resolve) => {
      socket.write(head);
      socket.write(BODY, resolve);
    });
    expect(failure).toBeFalsy();
    const text = (await readToEnd(socket.resume())).toString();
    expect(text).toMatch(/^HTTP\/1\.1 413 [^]*\r\nConnection: close\r\n/);
    await expect.poll(proxy.connections).toBe(0);
  });
});

describe('a connection whose body was discarded', () => {
  const BODY = Buffer.concat([...Array<Buffer>(40).fill(CHUNK), Buffer.from('0\r\n\r\n')]);
  const LARGE = '21.T11998/large';
  demo.put(LARGE, [textValue(1, 'DESC', 'x'.repeat(MIB / 4))]);

  test('serves the next requests, also when many follow in one packet and their responses are unread', async () => {
    const proxy = await startProxy(env);
    const large = `/api/handles/${LARGE}`;
    await proxy.ask(large);
    const refused = Buffer.concat([Buffer.from(headOf('GET', large, CHUNKED)), BODY]);
    const followed = headOf('GET', large).repeat(40) + headOf('GET', large, { Connection: 'close' });
    const socket = await openSocket(proxy.url);
    socket.pause().write(Buffer.concat([refused, refused, Buffer.from(followed)]));
    // Answered after the proxy has read the requests of the connection.
    expect((await proxy.ask(PATH)).status).toBe(200);
    const text = (await readToEnd(socket.resume())).toString();
    expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(43);
  });

  test('stays open after 404 and a body that fits the bound', async () => {
    const proxy = await startProxy(env);
    const socket = await openSocket(proxy.url);
    const body = Buffer.alloc(MIB, 'x').toString();
    const refused = await exchangeOn(socket, headOf('POST', '/api/unknown', length(MIB)) + body);
    expect([refused.status, refused.headers['connection']]).toEqual([404, 'keep-alive']);
    expect((await exchangeOn(socket, headOf('GET', PATH))).status).toBe(200);
  });

  test('is announced as closed if the body is longer than the bound', async () => {
    const proxy = await startProxy(env);
    const socket = await openSocket(proxy.url);
    const refused = await exchangeOn(socket, headOf('POST', '/api/unknown', length(5 * MIB)));
    expect([refused.status, refused.headers['connection']]).toEqual([404, 'close']);
  });
});
