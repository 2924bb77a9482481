// Deliberately slow clients: the proxy disconnects them, and rejects excess connections.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, putNumbered } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { startProxy } from '../support/proxy.js';
import { exchange, openSocket } from '../support/raw-socket.js';

const PATH = '/api/handles/21.T11998/slow';
const demo = await startDemoServer();
const env = { UPSTREAM_URL: demo.url };

const headOf = (length: number, path = PATH): string =>
  [
    `PUT ${path} HTTP/1.1`,
    'Host: x',
    ...Object.entries(WRITE_HEADERS).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${length}`,
    '\r\n',
  ].join('\r\n');

describe('slow clients', () => {
  test('receive 408 and lose their connection for a late head or body', async () => {
    const proxy = await startProxy({
      ...env,
      ...fixed({ server: { headersTimeoutMs: 1000, requestTimeoutMs: 1000 } }),
    });
    const [head, body] = await Promise.all([
      exchange(proxy.url, 'GET /api/handles/21.T1/a HTTP/1.1\r\nHost: x\r\nX-Slow: '),
      exchange(proxy.url, `${headOf(500)}[`),
    ]);
    for (const { answers, closed } of [head, body]) {
      expect(answers.map(({ status }) => status)).toEqual([408]);
      expect(closed).toBe(true);
    }
  });

  test.each(['0s', '1ms'])(
    'are disconnected after a response if server.keepAliveTimeout is %s',
    async (keepAlive) => {
      // Without traffic, a connection stays open for longer than the limit of a test.
      const idle = { UPSTREAM_WRITE_TIMEOUT: '10m' };
      const proxy = await startProxy({ ...env, ...idle, SERVER_KEEP_ALIVE_TIMEOUT: keepAlive });
      const request = 'GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n';
      const { answers, closed } = await exchange(proxy.url, request);
      expect([answers.map(({ status }) => status), closed]).toEqual([[200], true]);
    },
  );

  test('are disconnected immediately beyond server.maxConnections, while earlier connections stay open', async () => {
    const proxy = await startProxy({ ...env, SERVER_MAX_CONNECTIONS: '2' });
    const first = await openSocket(proxy.url);
    await openSocket(proxy.url);
    const third = await openSocket(proxy.url);
    await new Promise((resolve) => third.once('close', resolve));
    first.write('GET /api/handles/21.T11998/page HTTP/1.1\r\nHost: x\r\n\r\n');
    const data = await new Promise<Buffer>((resolve) => {
      first.once('data', resolve);
    });
    expect(data.toString()).toContain('HTTP/1.1 200');
  });

  const OTHER = '/api/handles/21.T11998/page';

  test('block no other reader or writer, even of the same handle, while their bodies trickle in', async () => {
    const proxy = await startProxy({
      ...env,
      UPSTREAM_CONCURRENCY: '1',
      ...fixed({ upstream: { queueTimeoutMs: 1000 } }),
    });
    await proxy.ask(OTHER);
    for (let count = 0; count < 5; count++) (await openSocket(proxy.url)).write(`${headOf(500, OTHER)}[`);
    expect((await proxy.ask(OTHER)).headers['cache-status']).toContain('hit');
    expect((await putNumbered(proxy.url, PATH, 1)).status).toBe(201);
    expect((await putNumbered(proxy.url, OTHER, 2)).status).toBe(200);
  });

  test.each([PATH, '/api/v2/handles/21.T11998/slow'])(
    'share a body buffer bound, beyond which the oldest unfinished body is cancelled (PUT %s)',
    async (path) => {
      const proxy = await startProxy({
        ...env,
        HTTP_MAX_BODY_SIZE: '2KiB',
        ...fixed({ http: { maxBufferedBodyBytes: 4096 } }),
      });
      const part = ' '.repeat(1500);
      const slow = [];
      for (let count = 0; count < 2; count++) {
        slow.push(exchange(proxy.url, headOf(2000, path) + part, { answers: 1 }));
        // This response shows that the proxy has read the partial request before it.
        await proxy.ask(OTHER);
      }
      const third = exchange(proxy.url, headOf(2000) + part, { answers: 1 });
      const first = (await slow[0])?.answers[0];
      expect(first?.status).toBe(503);
      expect(Number(first?.headers['retry-after'])).toBeGreaterThan(0);
      expect((await putNumbered(proxy.url, PATH, 3)).status).toBeLessThan(300);
      await proxy.close();
      for (const late of [slow[1], third]) expect((await late)?.answers).toEqual([]);
    },
  );
});
