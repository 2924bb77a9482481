// Request smuggling: the proxy rejects requests that two servers in sequence may parse differently.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { exchange } from '../support/raw-socket.js';

const demo = await startDemoServer();
const HOST = 'Host: proxy.example\r\n';
const hidden = `GET /api/handles/21.T11998/hidden HTTP/1.1\r\n${HOST}\r\n`;
const line = (method: string): string => `${method} /api/handles/21.T11998/page HTTP/1.1\r\n`;
const chunked = 'Transfer-Encoding: chunked\r\n';

describe('HTTP listener under request smuggling attacks', () => {
  test.each<[string, string]>([
    ['a folded header (obs-fold)', `${HOST}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n${hidden}`],
    ['a folded Content-Length', `${HOST}Content-Length:\r\n 0\r\n\r\n${hidden}`],
    ['a header that starts with a space', `${HOST} Content-Length: 5\r\n\r\n${hidden}`],
    ['a space before the colon', `${HOST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${hidden}`],
    ['a tab before the colon', `${HOST}Content-Length\t: 0\r\n\r\n${hidden}`],
    ['bare line feeds', `Host: proxy.example\nContent-Length: 0\n\n${hidden}`],
    ['a bare line feed in a header', `${HOST}X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`],
    ['a bare carriage return', `${HOST}X: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`],
    ['a null byte in a header', `${HOST}X: a\0b\r\n\r\n${hidden}`],
    ['Transfer-Encoding: identity', `${HOST}Transfer-Encoding: identity\r\n\r\n${hidden}`],
    ['Transfer-Encoding: gzip', `${HOST}Transfer-Encoding: gzip\r\n\r\n${hidden}`],
    [
      'chunked, then identity on a later line',
      `${HOST}${chunked}Transfer-Encoding: identity\r\n\r\n0\r\n\r\n${hidden}`,
    ],
    ['chunked in quotes', `${HOST}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n${hidden}`],
    ['a vertical tab around chunked', `${HOST}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n${hidden}`],
    ['a negative Content-Length', `${HOST}Content-Length: -1\r\n\r\n${hidden}`],
    ['a hexadecimal Content-Length', `${HOST}Content-Length: 0x0\r\n\r\n${hidden}`],
    ['an overflowing Content-Length', `${HOST}Content-Length: 99999999999999999999\r\n\r\n${hidden}`],
    ['a chunk longer than its size', `${HOST}${chunked}\r\n1\r\nab\r\n0\r\n\r\n${hidden}`],
    ['a negative chunk', `${HOST}${chunked}\r\n-1\r\n\r\n0\r\n\r\n${hidden}`],
    ['a chunk size with 0x', `${HOST}${chunked}\r\n0x1\r\na\r\n0\r\n\r\n${hidden}`],
    ['an overflowing chunk size', `${HOST}${chunked}\r\n10000000000000001\r\na\r\n0\r\n\r\n${hidden}`],
    ['a chunk ended by a bare line feed', `${HOST}${chunked}\r\n1\na\r\n0\r\n\r\n${hidden}`],
    [
      'a different coding before chunked',
      `${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${hidden}`,
    ],
    [
      'a different coding on an earlier line',
      `${HOST}Transfer-Encoding: gzip\r\n${chunked}\r\n0\r\n\r\n${hidden}`,
    ],
    ['an empty coding on an earlier line', `${HOST}Transfer-Encoding: \r\n${chunked}\r\n0\r\n\r\n${hidden}`],
    ['two Host lines', `${HOST}${HOST}\r\n${hidden}`],
    ['two different Host lines', `${HOST}host: other.example\r\n\r\n${hidden}`],
    ...[
      'proxy.example, other.example',
      'proxy.example:port',
      'proxy.example:80:80',
      'user@proxy.example',
      'proxy.example/path',
      'http://proxy.example',
      'proxy example',
      '[::1',
      '[]',
      '"proxy.example"',
      'proxy%2.example',
      'proxy\x80.example',
    ].map((host): [string, string] => [`the Host ${JSON.stringify(host)}`, `Host: ${host}\r\n\r\n${hidden}`]),
    ['a chunk extension with a bare line feed', `${HOST}${chunked}\r\n1;a\nb\r\na\r\n0\r\n\r\n${hidden}`],
  ])('returns 400, closes the connection and ignores later bytes for %s', async (_what, rest) => {
    const { url } = await startProxy({ UPSTREAM_URL: demo.url });
    for (const method of ['GET', 'PUT']) {
      demo.reset();
      const { answers, closed } = await exchange(url, line(method) + rest);
      expect(closed).toBe(true);
      expect(answers.at(-1)?.status, method).toBe(400);
      expect(demo.askedFor('21.T11998/hidden'), method).toBe(0);
      expect(JSON.stringify(answers)).not.toContain('hidden');
    }
  });

  const path = '/api/handles/21.T11998/page';

  test.each<[string, string]>([
    ['chunked in HTTP/1.0', `PUT ${path} HTTP/1.0\r\n${HOST}${chunked}\r\n0\r\n\r\n`],
    [
      'chunked in HTTP/1.0 with keep-alive',
      `GET ${path} HTTP/1.0\r\n${HOST}Connection: keep-alive\r\n${chunked}\r\n0\r\n\r\n`,
    ],
    ['a request line of HTTP/0.9', `GET ${path}\r\n`],
    ['a request line of HTTP/0.9 with headers', `GET ${path}\r\n${HOST}\r\n`],
    ['HTTP/0.9 by name', `GET ${path} HTTP/0.9\r\n${HOST}\r\n`],
    ['HTTP/2.0 in lines', `GET ${path} HTTP/2.0\r\n${HOST}\r\n`],
  ])('returns 400, closes the connection and ignores later bytes for %s', async (_what, bytes) => {
    const { url } = await startProxy({ UPSTREAM_URL: demo.url });
    demo.reset();
    const { answers, closed } = await exchange(url, `${bytes}\r\n${hidden}`);
    expect(closed).toBe(true);
    expect(answers.map(({ status }) => status)).toEqual([400]);
    expect(demo.asked).toBe(0);
  });

  test.each([
    '',
    'proxy.example',
    'PROXY.example:8080',
    '192.0.2.1',
    '[2001:db8::1]:80',
    'a_b.example:',
    'a%20b',
  ])('accepts the valid Host "%s"', async (host) => {
    const { url } = await startProxy({ UPSTREAM_URL: demo.url });
    const bytes = `${line('GET')}Host: ${host}\r\n\r\n`;
    const { answers } = await exchange(url, bytes.repeat(2), { answers: 2 });
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  });

  test('validates the Host of each request on a connection', async () => {
    const { url } = await startProxy({ UPSTREAM_URL: demo.url });
    const request = (host: string): string => `${line('GET')}Host: ${host}\r\n\r\n`;
    for (const hosts of [['a', 'b'], ['a', 'a/b'], ['a/b']]) {
      const { answers } = await exchange(url, hosts.map(request).join(''), { answers: hosts.length });
      expect(answers.map(({ status }) => status)).toEqual(hosts.map((host) => (host === 'a/b' ? 400 : 200)));
    }
  });

  test('accepts chunk extensions and a trailer, and parses the next request correctly', async () => {
    const { url } = await startProxy({ UPSTREAM_URL: demo.url });
    const body = `2;ext="a;b"\r\n[]\r\n0;last\r\nX-Trailer: GET /api/handles/21.T11998/hidden HTTP/1.1\r\n\r\n`;
    const put = `${line('PUT')}${HOST}${chunked}Content-Type: application/json\r\n\r\n${body}`;
    const { answers } = await exchange(url, `${put}${line('GET')}${HOST}Connection: close\r\n\r\n`);
    expect(answers.map(({ status }) => status)).toEqual([401, 200]);
    expect(demo.askedFor('21.T11998/hidden')).toBe(0);
  });
});
