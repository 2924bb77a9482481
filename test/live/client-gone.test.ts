// Writes whose client disconnects: they are forwarded only if the complete body has arrived.
import '../support/real-sockets.js';
import { beforeEach, describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberIn, numbered, numberedBody, putNumbered } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { exchange, openSocket } from '../support/raw-socket.js';
import { HANDLE, PATH } from '../support/upstream.js';

const demo = await startDemoServer();

beforeEach(() => {
  demo.heal();
  demo.put(HANDLE, numbered(1));
  demo.reset();
});

const headOf = (length: number, path = PATH): string =>
  [
    `PUT ${path} HTTP/1.1`,
    'Host: x',
    ...Object.entries(WRITE_HEADERS).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${length}`,
    '\r\n',
  ].join('\r\n');

async function startAndRead(env: Record<string, string> = {}): Promise<Proxy> {
  const proxy = await startProxy({ UPSTREAM_URL: demo.url, ...env });
  expect(numberIn(await proxy.ask(PATH))).toBe(1);
  return proxy;
}

describe('write whose client disconnects', () => {
  test.each([
    ['hangs up', (socket: { end: () => unknown }) => socket.end()],
    ['resets the connection', (socket: { resetAndDestroy: () => unknown }) => socket.resetAndDestroy()],
  ])(
    'completes when the client %s after its body, and hides the old record from readers',
    async (_how, leave) => {
      const proxy = await startAndRead();
      demo.delay(50);
      const socket = await openSocket(proxy.url);
      const body = numberedBody(2);
      socket.write(headOf(body.length) + body);
      await expect.poll(() => demo.askedFor(HANDLE)).toBe(2);
      leave(socket);
      await expect.poll(async () => numberIn(await proxy.ask(PATH))).toBe(2);
      await expect.poll(async () => (await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    },
  );

  test('completes when the client leaves while the write is queued for an upstream connection', async () => {
    const proxy = await startAndRead(fixed({ upstream: { connections: 1 } }));
    demo.hold.holdReplies('PUT');
    const [first, second] = [await openSocket(proxy.url), await openSocket(proxy.url)];
    const body = numberedBody(2);
    first.write(headOf(body.length, '/api/handles/21.T11998/other') + body);
    await expect.poll(() => demo.hold.size).toBe(1);
    second.write(headOf(body.length) + body);
    // A raised fence prevents loads from being stored while the write is queued. An authoritative read
    // shows the fence without invalidating the entry.
    await expect
      .poll(async () => (await proxy.ask(`${PATH}?auth`)).headers['cache-status'])
      .not.toContain('stored');
    second.resetAndDestroy();
    demo.hold.sendHeld('PUT');
    await expect.poll(async () => numberIn(await proxy.ask(PATH))).toBe(2);
    await expect.poll(async () => (await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
  });

  test('is not forwarded when the client leaves in the middle of its body', async () => {
    const proxy = await startAndRead();
    const socket = await openSocket(proxy.url);
    const body = numberedBody(2);
    socket.write(headOf(body.length) + body.slice(0, 20));
    // A response to a different request shows that the proxy has read the first part.
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    socket.resetAndDestroy();
    expect((await putNumbered(proxy.url, '/api/handles/21.T11998/another', 1)).status).toBe(201);
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    expect(demo.askedFor(HANDLE)).toBe(1);
  });

  test('returns 408, and invalidates nothing, when the client stops sending in the middle of its body', async () => {
    const proxy = await startAndRead(fixed({ server: { headersTimeoutMs: 1000, requestTimeoutMs: 1000 } }));
    const body = numberedBody(2);
    const { answers } = await exchange(proxy.url, headOf(body.length) + body.slice(0, 20));
    expect(answers.map(({ status }) => status)).toEqual([408]);
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
  });
});
