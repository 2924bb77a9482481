// Path traversal and SSRF: no target reaches the admin listener, other upstream paths, or other servers.
import '../support/real-sockets.js';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startProxy } from '../support/proxy.js';
import { exchange } from '../support/raw-socket.js';

interface Target {
  url: string;
  /** Raw targets in order of arrival. */
  asked: string[];
}

async function startTarget(): Promise<Target> {
  const asked: string[] = [];
  const server = createServer((req, res) => {
    asked.push(req.url ?? '');
    res.writeHead(404, { 'Content-Type': 'application/json' });
    res.end('{"responseCode":100}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const send = async (url: string, target: string, more = 'Host: proxy.example\r\n') => {
  const bytes = Buffer.from(`GET ${target} HTTP/1.1\r\n${more}Connection: close\r\n\r\n`, 'latin1');
  const { answers } = await exchange(url, bytes);
  return answers[0];
};

const ESCAPES = ['..', '%2e%2e', '%2E.', '..%2f', '..%5c', '..\\', './/', '%252e%252e', '..;', '..%00'];
const PLACES = ['admin', 'metrics', 'stats', 'purge', 'readyz', 'api/site', 'secret'];

describe('path that contains dots, slashes and escapes', () => {
  test.each(ESCAPES)('addresses only handles at the upstream (%j)', async (escape) => {
    const upstream = await startTarget();
    const { url } = await startProxy({ UPSTREAM_URL: upstream.url, V2_ANONYMOUS_READ: 'true' });
    for (const place of PLACES) {
      for (const start of ['/api/handles/', '/api/handles/21.T1/', '/', '/api/v2/handles/21.T1/', '//']) {
        const answer = await send(url, `${start}${escape}/${escape}/${place}`);
        expect(answer?.body).not.toMatch(/"status":"(ok|ready)"|handle_proxy_|"memory"/);
      }
    }
    // The upstream may normalise a target, so the path must stay under /api/handles after URL parsing.
    for (const raw of upstream.asked) {
      expect(new URL(raw, 'http://upstream').pathname, raw).toMatch(/^\/api\/handles\/./);
      expect(raw).not.toMatch(/[\\\0]|\/\.\.?(\/|$)/);
    }
  });
});

describe('request target that names a different server (SSRF)', () => {
  test.each([
    ['in absolute form', (other: string) => [`${other}/api/handles/21.T1/a`, 'Host: proxy.example\r\n']],
    ['in Host', (other: string) => ['/api/handles/21.T1/a', `Host: ${other.slice(7)}\r\n`]],
    [
      'in forwarding headers',
      (other: string) => [
        '/api/handles/21.T1/a',
        `Host: a\r\nX-Forwarded-Host: ${other.slice(7)}\r\nForwarded: host=${other.slice(7)}\r\nX-Original-URL: ${other}\r\n`,
      ],
    ],
    ['as a user', (other: string) => [`/api/handles/@${other.slice(7)}/a`, 'Host: a\r\n']],
    ['behind two slashes', (other: string) => [`//${other.slice(7)}/api/handles/21.T1/a`, 'Host: a\r\n']],
    ['as a handle', (other: string) => [`/${other}/a`, 'Host: a\r\n']],
    ['for a forwarded request', (other: string) => [`${other}/api/sessions`, `Host: ${other.slice(7)}\r\n`]],
    ['for a list', (other: string) => [`${other}/api/handles?prefix=21.T1`, `Host: ${other.slice(7)}\r\n`]],
    ['for ePIC v2', (other: string) => [`${other}/api/v2/handles/21.T1/a`, `Host: ${other.slice(7)}\r\n`]],
  ])('causes no request to that server when it is named %s', async (_where, make) => {
    const [upstream, other] = [await startTarget(), await startTarget()];
    const { url } = await startProxy({ UPSTREAM_URL: upstream.url, V2_ANONYMOUS_READ: 'true' });
    const [target = '', headers] = make(other.url);
    const answer = await send(url, target, headers);
    expect(answer?.status).toBeGreaterThanOrEqual(200);
    expect(other.asked).toEqual([]);
  });

  test('opens no tunnel in authority form (CONNECT)', async () => {
    const [upstream, other] = [await startTarget(), await startTarget()];
    const { url } = await startProxy({ UPSTREAM_URL: upstream.url });
    const bytes = `CONNECT ${other.url.slice(7)} HTTP/1.1\r\nHost: a\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n`;
    const { answers, closed } = await exchange(url, bytes);
    expect(closed).toBe(true);
    expect(answers.every(({ status }) => status >= 400)).toBe(true);
    expect([...upstream.asked, ...other.asked]).toEqual([]);
  });
});
