// Web servers in front of the proxy, configured as in config/examples: forwarded requests and responses.
import { once } from 'node:events';
import { type IncomingHttpHeaders, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished } from 'vitest';
import { createControlledServer } from '../support/demo-control.js';
import { loadConfig } from '../../src/app/config.js';
import { serve } from '../../src/app/serve.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { FRONT_NAMES, NAME } from '../support/front-configs.js';
import { itWithProgram } from '../support/programs.js';
import { startFront } from '../support/tls-front.js';
import { USER01 } from '../support/v2.js';
import { freePort } from '../support/free-port.js';

interface Seen {
  method: string;
  target: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/**
 * Replaces the proxy and records the received requests, except health checks. With `breaks` it closes connections
 * instead of responding to others.
 */
async function startListener({ breaks = false, port = 0 } = {}): Promise<{ at: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((req, res) => {
    if (req.url === '/robots.txt') {
      res.end();
      return;
    }
    let body = '';
    req.setEncoding('utf8').on('data', (text: string) => (body += text));
    req.once('end', () => {
      seen.push({ method: req.method ?? '', target: req.url ?? '', headers: req.headers, body });
      if (breaks) req.socket.destroy();
      else {
        res.writeHead(200, {
          ETag: '"abc"',
          'Cache-Control': 'no-store',
          'Content-Type': 'application/json',
        });
        res.end(`{"text":"${'long '.repeat(1000)}"}`);
      }
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { at: `127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const TARGETS = [
  '/api/handles/21.T1%2Fabc',
  '/api/handles/21.T1%2fabc',
  '/api/handles/21.T1/a//b',
  '/api/handles//21.T1/a',
  '/api/handles/21.T1/a/',
  '/api/handles/21.T1/a+b%20c%2Bd;e=f',
  '/api/handles/21.T1/a%2525%C3%A4',
  '/api/handles/21.T1/a/../b/./c',
  '/api/handles/21.T1/a?index=1&type=URL&type=X+Y&callback=',
  '/21.T1/a?locatt=id:1&urlappend=%26z%3D3',
];

describe.each(FRONT_NAMES)('%s in front of the proxy', (name) => {
  for (const method of ['GET', 'PUT']) {
    itWithProgram(name, `forwards the target of a ${method} byte for byte`, async () => {
      const { at, seen } = await startListener();
      const front = await startFront(name, at);
      for (const target of TARGETS) await front.ask(target, { method });
      expect(seen.map(({ target }) => target)).toEqual(TARGETS);
    });
  }

  itWithProgram(name, 'sets the client and host headers itself, whatever the client claims', async () => {
    const { at, seen } = await startListener();
    const claimed = {
      'X-Forwarded-For': '192.0.2.1',
      'X-Forwarded-Proto': 'gopher',
      'X-Forwarded-Host': 'x',
      'X-Forwarded-Prefix': '/elsewhere',
      Forwarded: 'for=192.0.2.1',
      'X-Request-Id': 'x',
    };
    await (await startFront(name, at)).ask('/api/handles/21.T1/a', { headers: claimed });
    expect(seen[0]?.headers).not.toHaveProperty('x-forwarded-prefix');
    expect(seen[0]?.headers).not.toHaveProperty('forwarded');
    expect(seen[0]?.headers).toMatchObject({
      host: NAME,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': NAME,
      'x-request-id': expect.stringMatching(/^[\w@+/-]{8,36}$/) as unknown,
    });
  });

  itWithProgram(name, 'forwards credentials, conditions and body of a write', async () => {
    const { at, seen } = await startListener();
    const front = await startFront(name, at);
    const headers = { Authorization: USER01, 'If-None-Match': '*', 'Content-Type': 'application/json' };
    await front.ask('/api/handles/21.T1/a', { method: 'PUT', headers, body: '[{"index":1}]' });
    expect(seen[0]).toMatchObject({ method: 'PUT', body: '[{"index":1}]' });
    expect(seen[0]?.headers).toMatchObject({
      authorization: USER01,
      'if-none-match': '*',
      'content-type': 'application/json',
    });
  });

  itWithProgram(name, 'preserves the response headers that clients rely on, and caches nothing', async () => {
    const { at, seen } = await startListener();
    const front = await startFront(name, at);
    const headers = { 'Accept-Encoding': 'gzip' };
    for (let asked = 0; asked < 2; asked++) {
      const answer = await front.ask('/api/handles/21.T1/a', { headers });
      expect(answer.headers).toMatchObject({ etag: '"abc"', 'cache-control': 'no-store' });
      expect(answer.headers).not.toHaveProperty('content-encoding');
      expect(answer.text).toMatch(/^\{"text":"long /);
    }
    expect(seen).toHaveLength(2);
  });

  itWithProgram(name, 'never sends a write twice, not even to a different proxy', async () => {
    const [one, other] = [await startListener({ breaks: true }), await startListener({ breaks: true })];
    const front = await startFront(name, one.at, other.at);
    const headers = { 'Content-Type': 'application/json' };
    const answer = await front.ask('/api/handles/21.T1/?mintNewSuffix=true', {
      method: 'PUT',
      headers,
      body: '[]',
    });
    expect([502, 503]).toContain(answer.status);
    expect([...one.seen, ...other.seen]).toHaveLength(1);
  });

  itWithProgram(name, 'loses no request during a proxy outage, and reuses the proxy later', async () => {
    const [other, port] = [await startListener(), await freePort()];
    const front = await startFront(name, `127.0.0.1:${port}`, other.at);
    const headers = { 'Content-Type': 'application/json' };
    const ask = async (method = 'GET'): Promise<number> =>
      (await front.ask('/21.T1/a', { method, ...(method === 'PUT' && { headers, body: '[]' }) })).status;
    const whileAway: number[] = [];
    // Caddy cannot resend the body of a write.
    const methods =
      name === 'caddy' ? ['GET', 'GET', 'GET', 'GET'] : ['PUT', 'GET', 'PUT', 'GET', 'PUT', 'PUT'];
    for (const method of methods) whileAway.push(await ask(method));
    expect(whileAway).toEqual(whileAway.map(() => 200));
    // Each write arrives once, with its complete body.
    const written = other.seen.filter(({ method }) => method === 'PUT').map(({ body }) => body);
    expect(written).toEqual(methods.filter((method) => method === 'PUT').map(() => '[]'));
    const { seen } = await startListener({ port });
    const usesIt = async (): Promise<boolean> => (await ask()) === 200 && seen.length > 0;
    // By default httpd does not retry a failed server for 60 s.
    await expect.poll(usesIt).toBe(true);
  });

  itWithProgram(name, 'gets hits from the proxy, whatever headers it adds', async () => {
    const demo = createControlledServer();
    const { url } = await demo.listen(0);
    onTestFinished(() => demo.close());
    const proxy = await startBuiltProxy({
      UPSTREAM_URL: url,
      HTTP_TRUSTED_PROXIES: 'loopback',
      LOG_REQUESTS: 'all',
    });
    const front = await startFront(name, new URL(proxy.url).host);
    const path = '/api/handles/21.T11998/page';
    await front.ask(path);
    // Caddy sends `Via` since 2.9, and each of the servers may be behind a further proxy.
    const asked = [
      {},
      { Origin: 'https://app.example.org' },
      { Via: '1.1 another' },
      { 'Accept-Encoding': 'gzip' },
    ];
    for (const headers of asked) {
      const answer = await front.ask(path, { headers });
      expect(answer.headers['cache-status']).toContain('; hit');
      expect(answer.headers['access-control-allow-origin']).toBe(headers.Origin);
    }
    const hits = () => proxy.logs().filter(({ result }) => result === 'hit');
    await expect.poll(() => hits().length).toBe(asked.length);
  });

  itWithProgram(name, 'returns its public address in the Location of a new handle', async () => {
    const demo = createControlledServer();
    const { url } = await demo.listen(0);
    const ports = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0', LOG_LEVEL: 'silent' };
    const env = { ...ports, UPSTREAM_URL: url, HTTP_TRUSTED_PROXIES: 'loopback' };
    const proxy = await serve(loadConfig({ env, readFile: () => '' }));
    onTestFinished(async () => {
      await proxy.stop();
      await demo.close();
    });
    const front = await startFront(name, new URL(proxy.url).host);
    const answer = await front.ask('/api/v2/handles/21.T11998/NEW%2F%2Fname', {
      method: 'PUT',
      headers: { Authorization: USER01, 'Content-Type': 'application/json', 'If-None-Match': '*' },
      body: JSON.stringify([{ type: 'URL', parsed_data: 'https://example.org/new' }]),
    });
    expect(answer.status).toBe(201);
    expect(answer.headers['location']).toBe(`https://${NAME}/api/v2/handles/21.T11998/NEW%2F%2Fname`);
    const read = await front.ask('/api/handles/21.T11998/NEW//name?type=URL');
    expect(JSON.parse(read.text)).toMatchObject({ responseCode: 1, handle: '21.T11998/NEW//name' });
  });
});
