// Invalid HTTP responses to forwarded requests: the proxy does not relay them unchanged.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { startHostileServer } from '../support/hostile-server.js';
import { startProxy } from '../support/proxy.js';
import { exchange, openSocket } from '../support/raw-socket.js';

let reply = '';
const upstream = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.on('data', () => {
    socket.write(reply);
  });
}).listen(0, '127.0.0.1');
await once(upstream, 'listening');
afterAll(() => {
  upstream.close();
});

const env = {
  UPSTREAM_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
  UPSTREAM_CONCURRENCY: '1',
};
const PUT = 'PUT /api/handles/21.T1/a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]';
const LOGIN = 'GET /api/handles/21.T1/a HTTP/1.1\r\nHost: x\r\nAuthorization: Basic eDp5\r\n\r\n';

describe('unusual response to a forwarded request', () => {
  test.each(['099', '600', '999'])(
    'becomes a 502, and releases its permit, when its status is %s',
    async (status) => {
      const proxy = await startProxy(env);
      reply = `HTTP/1.1 ${status} Odd\r\nContent-Length: 2\r\n\r\n{}`;
      for (const question of [PUT, LOGIN]) {
        const { answers } = await exchange(proxy.url, question, { answers: 1 });
        expect(answers.map((answer) => answer.status)).toEqual([502]);
        expect(answers[0]?.body).toContain('Invalid response from the Handle server');
      }
    },
  );

  test('is relayed without its Content-Length when it is a 204, because clients would wait for a body', async () => {
    const proxy = await startProxy(env);
    reply = 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n';
    const { answers } = await exchange(proxy.url, PUT.replace('Host', 'Connection: close\r\nHost'));
    expect(answers.map(({ status, headers }) => [status, headers['content-length']])).toEqual([
      [204, undefined],
    ]);
  });

  test.each([
    ['is cut', ''],
    ['has an invalid chunk', 'zz\r\n'],
  ])('becomes a 502 when its body %s before its first byte', async (_what, body) => {
    const url = await startHostileServer((socket) => {
      socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
    });
    const proxy = await startProxy({ UPSTREAM_URL: url, REVERSE_LOOKUP_URL: url });
    for (const [path, server] of [
      ['/api/handles?prefix=21.T1', 'Handle server'],
      ['/hrls/ping', 'reverse lookup service'],
    ] as const) {
      const { status, text } = await proxy.ask(path);
      expect([status, JSON.parse(text)]).toMatchObject([
        502,
        { message: `Invalid response from the ${server}` },
      ]);
    }
  });

  test('is aborted when the client has left before it begins', async () => {
    const asked: Socket[] = [];
    const url = await startHostileServer((socket) => asked.push(socket));
    const proxy = await startProxy({ UPSTREAM_URL: url });
    const client = await openSocket(proxy.url);
    client.write('GET /api/handles?prefix=21.T1 HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => asked.length).toBe(1);
    client.resetAndDestroy();
    await expect.poll(() => proxy.connections()).toBe(0);
    const [server] = asked as [Socket];
    const aborted = once(server, 'close');
    server.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    await aborted;
  });
});
