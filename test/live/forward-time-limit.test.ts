// upstream.writeTimeout: limits a forwarded request until its response has been read.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type RequestListener, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startProxy } from '../support/proxy.js';

const SITE = '/api/site';
const LIMIT_MS = 300;

async function startUpstream(listener: RequestListener): Promise<{ url: string; connections: () => number }> {
  let connections = 0;
  const server = createServer(listener).listen(0, '127.0.0.1');
  server.on('connection', () => connections++);
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, connections: () => connections };
}

const startLimited = (url: string) =>
  startProxy({ UPSTREAM_URL: url, UPSTREAM_WRITE_TIMEOUT: `${LIMIT_MS}ms` });

describe('upstream.writeTimeout', () => {
  test('returns 504 when the response never starts', async () => {
    const { url } = await startUpstream(() => undefined);
    const proxy = await startLimited(url);
    expect((await proxy.ask(SITE)).status).toBe(504);
  });

  test('aborts a response that does not end in time', async () => {
    let open: ServerResponse | undefined;
    const { url } = await startUpstream((_req, res) => {
      open = res;
      res.writeHead(200, { 'Content-Length': '10' });
      res.write('half');
    });
    const proxy = await startLimited(url);
    await expect(proxy.ask(SITE)).rejects.toMatchObject({ code: 'ECONNRESET' });
    await expect.poll(() => open?.destroyed).toBe(true);
  });

  test('keeps the connection of a completed request open for the next request', async () => {
    const upstream = await startUpstream((_req, res) => res.end('{"responseCode":1}'));
    const proxy = await startLimited(upstream.url);
    expect((await proxy.ask(SITE)).status).toBe(200);
    // A leftover timer of the first request would fire within twice the limit.
    await new Promise((resolve) => setTimeout(resolve, 2 * LIMIT_MS));
    expect((await proxy.ask(SITE)).status).toBe(200);
    expect(upstream.connections()).toBe(1);
  });
});
