// Connection limits: the total limit closes an idle connection, the network limit the new connection.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { configFrom } from '../support/load-config.js';
import { askTcp, openNativeSocket, readToEnd } from '../support/native-client.js';
import { codeOf, nativeRequest, readResponse } from '../support/native-messages.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { exchangeOn, openSocket } from '../support/raw-socket.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';
const GET = `GET ${PATH} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** The clock and the idle-connection sampling are fake; sockets are real. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});
const SAMPLE_MS = 500;
const pass = (ms = SAMPLE_MS): void => void vi.advanceTimersByTime(ms);

const start = (env: Record<string, string>, deps: Parameters<typeof startProxy>[1] = {}): Promise<Proxy> =>
  startProxy({ UPSTREAM_URL: demo.url, ...env }, deps);

async function statusOn(socket: Socket): Promise<number> {
  const { status } = await exchangeOn(socket, GET);
  return status;
}

/** Waits until the proxy has closed the connection. */
async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await once(socket.resume(), 'close');
}

async function valuesOf(proxy: Proxy, name: string): Promise<[reason: unknown, value: number][]> {
  const metric = (await proxy.metrics()).find((one) => one.name === name);
  return metric!.values.map(({ labels, value }) => [labels['reason'], value]);
}
const dropped = async (proxy: Proxy) =>
  Object.fromEntries(await valuesOf(proxy, 'handle_proxy_connections_dropped_total')) as object;
const idleClosed = async (proxy: Proxy): Promise<number> =>
  (await valuesOf(proxy, 'handle_proxy_idle_connections_closed_total'))[0]![1];

describe('server.maxConnections limit', () => {
  test('closes the least recently used idle connection for each new connection', async () => {
    const proxy = await start({ SERVER_MAX_CONNECTIONS: '3' });
    const [a, b, c] = [await openSocket(proxy.url), await openSocket(proxy.url), await openSocket(proxy.url)];
    // Connection a is used first and last.
    for (const socket of [a, c, b, a]) {
      expect(await statusOn(socket)).toBe(200);
      pass();
    }
    pass(1500);
    expect(await statusOn(await openSocket(proxy.url))).toBe(200);
    await closed(c);
    expect(await statusOn(await openSocket(proxy.url))).toBe(200);
    await closed(b);
    expect(await statusOn(a)).toBe(200);
    expect(await idleClosed(proxy)).toBe(2);
    expect(await dropped(proxy)).toEqual({ total: 0, network: 0, unread: 0 });
  });

  test('closes a connection that has sent no request before a less recently used connection', async () => {
    const proxy = await start({ SERVER_MAX_CONNECTIONS: '2' });
    const used = await openSocket(proxy.url);
    await statusOn(used);
    pass(60_000);
    const silent = await openSocket(proxy.url);
    pass(2000);
    expect(await statusOn(await openSocket(proxy.url))).toBe(200);
    await closed(silent);
    expect(await statusOn(used)).toBe(200);
  });

  test('closes the new connection when all others have been used within the last second', async () => {
    const proxy = await start({ SERVER_MAX_CONNECTIONS: '1' });
    const used = await openSocket(proxy.url);
    await statusOn(used);
    pass();
    pass();
    await closed(await openSocket(proxy.url));
    expect(await dropped(proxy)).toEqual({ total: 1, network: 0, unread: 0 });
    pass();
    expect(await statusOn(await openSocket(proxy.url))).toBe(200);
    await closed(used);
  });

  test('closes no connection with a request in flight (upstream, body, first head, later head)', async () => {
    const proxy = await start({ SERVER_MAX_CONNECTIONS: '5' });
    const sockets = [];
    for (let at = 0; at < 5; at++) sockets.push(await openSocket(proxy.url));
    const [waiting, body, first, later, idle] = sockets as [Socket, Socket, Socket, Socket, Socket];
    expect(await statusOn(later)).toBe(200);
    pass();
    pass();
    demo.hold.holdReplies('GET');
    const answer = exchangeOn(waiting, `GET /api/handles/21.T11998/slow HTTP/1.1\r\nHost: x\r\n\r\n`);
    const head = Object.entries(WRITE_HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
    body.write(`PUT ${PATH} HTTP/1.1\r\nHost: x\r\n${head.join('')}Content-Length: 500\r\n\r\n[`);
    first.write('GET / HTTP');
    later.write(GET.slice(0, 20));
    await expect.poll(() => demo.askedFor('21.T11998/slow')).toBe(1);
    // This response shows that the proxy has read the earlier partial requests.
    expect(await statusOn(idle)).toBe(200);
    pass(5000);

    const next = await openSocket(proxy.url);
    await closed(idle);
    expect(await statusOn(next)).toBe(200);
    pass();
    await closed(await openSocket(proxy.url));
    demo.hold.sendHeld('GET');
    expect((await answer).status).toBe(404);
    expect((await exchangeOn(later, GET.slice(20))).status).toBe(200);
    expect((await exchangeOn(first, '/1.1\r\nHost: x\r\n\r\n')).status).toBe(200);
    expect((await exchangeOn(body, ' '.repeat(499))).status).toBe(400);
    expect([await idleClosed(proxy), await dropped(proxy)]).toEqual([1, { total: 1, network: 0, unread: 0 }]);
  });

  test('fails no request when more clients than the limit keep idle connections open', async () => {
    const proxy = await start({ SERVER_MAX_CONNECTIONS: '2' });
    const agents = Array.from({ length: 5 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
    for (let round = 0; round < 3; round++) {
      for (const agent of agents) {
        const [response] = (await once(request(proxy.url + PATH, { agent }).end(), 'response')) as [
          IncomingMessage,
        ];
        await once(response.resume(), 'end');
        expect(response.statusCode).toBe(200);
        pass(2000);
      }
    }
    expect(await idleClosed(proxy)).toBeGreaterThanOrEqual(10);
    for (const agent of agents) agent.destroy();
  });
});

describe('connection limit per network', () => {
  const PER_NETWORK = { SERVER_MAX_CONNECTIONS_PER_NETWORK: '2' };
  const NEAR = '127.0.0.77';
  const FAR = '127.0.1.1';

  test('rejects the next connection from a network at its limit, and closes none from a different network', async () => {
    const proxy = await start(PER_NETWORK);
    const first = await openSocket(proxy.url);
    await openSocket(proxy.url, NEAR);
    await closed(await openSocket(proxy.url, NEAR));
    await closed(await openSocket(proxy.url));
    expect(await statusOn(await openSocket(proxy.url, FAR))).toBe(200);
    expect(await statusOn(first)).toBe(200);
    expect(await dropped(proxy)).toEqual({ total: 0, network: 2, unread: 0 });
  });

  test('frees a place when a connection closes', async () => {
    const proxy = await start(PER_NETWORK);
    const first = await openSocket(proxy.url);
    await openSocket(proxy.url);
    first.destroy();
    await expect.poll(proxy.connections).toBe(1);
    expect(await statusOn(await openSocket(proxy.url))).toBe(200);
  });

  test('exempts trusted proxies until a reload removes them from http.trustedProxies', async () => {
    const proxy = await start({ ...PER_NETWORK, HTTP_TRUSTED_PROXIES: NEAR });
    const openMany = async (): Promise<Socket> => {
      for (let at = 0; at < 5; at++) await openSocket(proxy.url, NEAR);
      return openSocket(proxy.url, NEAR);
    };
    expect(await statusOn(await openMany())).toBe(200);
    const reloaded = { UPSTREAM_URL: demo.url, ...PER_NETWORK, HTTP_TRUSTED_PROXIES: FAR };
    proxy.app.reload(configFrom({ env: reloaded }));
    await closed(await openMany());
    expect(await dropped(proxy)).toMatchObject({ network: 4 });
  });

  test('logs dropped connections in one line per minute', async () => {
    const lines: string[] = [];
    const to = new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(...chunk.toString().trim().split('\n'));
        done();
      },
    });
    const proxy = await start(
      { SERVER_MAX_CONNECTIONS_PER_NETWORK: '1' },
      { logger: createLogger({ level: 'warn', destination: to }) },
    );
    await openSocket(proxy.url);
    for (let at = 0; at < 3; at++) await closed(await openSocket(proxy.url));
    proxy.pass(60_000);
    await closed(await openSocket(proxy.url));
    const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const line = { msg: 'too many connections, closing new ones', listener: 'http', reason: 'network' };
    expect(logged).toMatchObject([
      { ...line, network: '127.0.0.0/24', dropped: 1 },
      { ...line, dropped: 3 },
    ]);
  });
});

describe('native listener at its connection limit', () => {
  const HANDLE = '21.T11998/page';
  const ON = { NATIVE_TCP_PORT: '0' };
  const urlOf = ({ tcpPort }: Proxy): string => `http://127.0.0.1:${tcpPort}`;

  test('closes a silent connection for a new connection, but no connection with a request in flight', async () => {
    const proxy = await start({ ...ON, ...fixed({ native: { tcp: { maxConnections: 3 } } }) });
    const silent = await openSocket(urlOf(proxy));
    const slow = await openNativeSocket(proxy.tcpPort);
    const waiting = await openNativeSocket(proxy.tcpPort);
    demo.hold.holdReplies('GET');
    waiting.write(nativeRequest('21.T11998/held'));
    slow.write(nativeRequest(HANDLE).subarray(0, 30));
    await expect.poll(() => demo.askedFor('21.T11998/held')).toBe(1);
    pass(5000);
    const next = await openNativeSocket(proxy.tcpPort);
    await closed(silent);
    demo.hold.sendHeld('GET');
    const answers = [waiting, slow, next].map(readToEnd);
    slow.write(nativeRequest(HANDLE).subarray(30));
    next.write(nativeRequest(HANDLE));
    expect((await Promise.all(answers)).map((answer) => codeOf(readResponse(answer)))).toEqual([100, 1, 1]);
    expect(await idleClosed(proxy)).toBe(1);
  });

  test('applies a separate limit to each network', async () => {
    const proxy = await start({ ...ON, SERVER_MAX_CONNECTIONS_PER_NETWORK: '1' });
    await openSocket(urlOf(proxy), '127.0.1.1');
    await closed(await openSocket(urlOf(proxy), '127.0.1.2'));
    expect(codeOf(await askTcp(proxy.tcpPort, HANDLE))).toBe(1);
    expect(await statusOn(await openSocket(proxy.url, '127.0.1.1'))).toBe(200);
    expect(await dropped(proxy)).toEqual({ total: 0, network: 1, unread: 0 });
  });
});
