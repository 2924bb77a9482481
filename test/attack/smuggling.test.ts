// Shapes of requests that two servers in a row may read in different ways: none gets further than here.
import '../support/real-sockets.js';
import { expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { exchange } from '../support/raw-socket.js';

const demo = await startDemoServer();
const HOST = 'Host: proxy.example\r\n';
const hidden = `GET /api/handles/21.T11998/hidden HTTP/1.1\r\n${HOST}\r\n`;
const line = (method: string): string => `${method} /api/handles/21.T11998/page HTTP/1.1\r\n`;
const chunked = 'Transfer-Encoding: chunked\r\n';

test.each<[string, string]>([
  ['a folded header (obs-fold)', `${HOST}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n${hidden}`],
  ['a folded Content-Length', `${HOST}Content-Length:\r\n 0\r\n\r\n${hidden}`],
  ['a header that begins with a space', `${HOST} Content-Length: 5\r\n\r\n${hidden}`],
  ['a space before the colon', `${HOST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${hidden}`],
  ['a tab before the colon', `${HOST}Content-Length\t: 0\r\n\r\n${hidden}`],
  ['bare line feeds', `Host: proxy.example\nContent-Length: 0\n\n${hidden}`],
  ['a bare line feed in a header', `${HOST}X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`],
  ['a bare carriage return', `${HOST}X: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`],
  ['a null byte in a header', `${HOST}X: a\0b\r\n\r\n${hidden}`],
  ['Transfer-Encoding: identity', `${HOST}Transfer-Encoding: identity\r\n\r\n${hidden}`],
  ['Transfer-Encoding: gzip', `${HOST}Transfer-Encoding: gzip\r\n\r\n${hidden}`],
  ['chunked twice', `${HOST}${chunked}Transfer-Encoding: identity\r\n\r\n0\r\n\r\n${hidden}`],
  ['chunked in quotes', `${HOST}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n${hidden}`],
  ['a vertical tab around chunked', `${HOST}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n${hidden}`],
  ['a negative Content-Length', `${HOST}Content-Length: -1\r\n\r\n${hidden}`],
  ['a hexadecimal Content-Length', `${HOST}Content-Length: 0x0\r\n\r\n${hidden}`],
  ['an endless Content-Length', `${HOST}Content-Length: 99999999999999999999\r\n\r\n${hidden}`],
  ['a chunk that is longer than it says', `${HOST}${chunked}\r\n1\r\nab\r\n0\r\n\r\n${hidden}`],
  ['a negative chunk', `${HOST}${chunked}\r\n-1\r\n\r\n0\r\n\r\n${hidden}`],
  ['a chunk size with 0x', `${HOST}${chunked}\r\n0x1\r\na\r\n0\r\n\r\n${hidden}`],
  ['a chunk size that overflows', `${HOST}${chunked}\r\n10000000000000001\r\na\r\n0\r\n\r\n${hidden}`],
  ['a chunk ended by a bare line feed', `${HOST}${chunked}\r\n1\na\r\n0\r\n\r\n${hidden}`],
  ['a chunk extension with a bare line feed', `${HOST}${chunked}\r\n1;a\nb\r\na\r\n0\r\n\r\n${hidden}`],
])('%s: 400, closed, and the bytes behind are never answered', async (_what, rest) => {
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

test('chunk extensions and trailers are parsed and not forwarded', async () => {
  const { url } = await startProxy({ UPSTREAM_URL: demo.url });
  const body = `2;ext="a;b"\r\n[]\r\n0;last\r\nX-Trailer: GET /api/handles/21.T11998/hidden HTTP/1.1\r\n\r\n`;
  const put = `${line('PUT')}${HOST}${chunked}Content-Type: application/json\r\n\r\n${body}`;
  const { answers } = await exchange(url, `${put}${line('GET')}${HOST}Connection: close\r\n\r\n`);
  expect(answers.map(({ status }) => status)).toEqual([401, 200]);
  expect(demo.askedFor('21.T11998/hidden')).toBe(0);
});
