// Request smuggling: ambiguous framing could hide a second request from a proxy in front.
import { describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { exchange } from '../support/raw-socket.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';
const HOST = 'Host: proxy.example\r\n';
const hidden = `GET /api/handles/21.T11998/hidden HTTP/1.1\r\n${HOST}\r\n`;
const chunked = 'Transfer-Encoding: chunked\r\n';

describe('proxy under request smuggling attacks', () => {
  test.each([
    ['Content-Length before Transfer-Encoding', `Content-Length: 4\r\n${chunked}\r\n0\r\n\r\n${hidden}`],
    ['Transfer-Encoding before Content-Length', `${chunked}Content-Length: 4\r\n\r\n0\r\n\r\n${hidden}`],
    ['two different Content-Lengths', `Content-Length: 0\r\nContent-Length: 40\r\n\r\n${hidden}`],
    ['a list of Content-Lengths', `Content-Length: 0, 40\r\n\r\n${hidden}`],
    ['a Content-Length with a sign', `Content-Length: +0\r\n\r\n${hidden}`],
    ['chunked that is not the last coding', `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${hidden}`],
    ['chunked in disguise', `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hidden}`],
    ['a bad chunk size', `${chunked}\r\nzz\r\n\r\n${hidden}`],
  ])('returns 400, closes the connection and ignores later bytes for %s', async (_what, rest) => {
    const { url } = await startProxy({ UPSTREAM_URL: demo.url });
    for (const method of ['GET', 'PUT']) {
      demo.reset();
      const { answers, closed } = await exchange(url, `${method} ${PATH} HTTP/1.1\r\n${HOST}${rest}`);
      expect(closed).toBe(true);
      expect(answers.map(({ status }) => status).at(-1)).toBe(400);
      expect(demo.askedFor('21.T11998/hidden')).toBe(0);
      expect(JSON.stringify(answers)).not.toContain('hidden');
    }
  });
});
