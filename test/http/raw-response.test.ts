// test/property/cached-responses.test.ts compares the bytes of cached responses.
import { once } from 'node:events';
import { Agent, IncomingMessage, ServerResponse, createServer, request } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type RawResponse, createSendRaw, linesOf } from '../../src/http/raw-response.js';

describe('raw response', () => {
  test('reuses one serialized head per second on a keep-alive connection', async () => {
    let now = 5000;
    const send = createSendRaw(Date.now);
    const answer = { status: 200, lines: linesOf(['Content-Length', '5']), body: 'hello' };
    const server = createServer((_req, res) => {
      send(res, answer, now);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => {
      agent.destroy();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const ask = async (): Promise<string> => {
      const [got] = (await once(request({ port, agent }).end(), 'response')) as [IncomingMessage];
      return `${got.headers.connection} ${await text(got)}`;
    };
    const written = vi.spyOn(ServerResponse.prototype, 'writeHead');
    const answers = [await ask(), await ask(), await ask()];
    expect(written).toHaveBeenCalledTimes(1);
    now += 1000;
    answers.push(await ask(), await ask());
    expect(written).toHaveBeenCalledTimes(2);
    expect(new Set(answers)).toEqual(new Set(['keep-alive hello']));
  });

  test('has Connection: close for a 304 over HTTP/1.0, and keep-alive for a later HTTP/1.1 request', () => {
    const send = createSendRaw(Date.now);
    const headOf = (httpVersionMinor: number, answer: Omit<RawResponse, 'lines'>): string => {
      const req = Object.assign(new IncomingMessage(new Socket()), { httpVersionMajor: 1, httpVersionMinor });
      const res = new ServerResponse(req);
      // Node sets this for a `Connection: keep-alive` request.
      res.shouldKeepAlive = true;
      send(res, { ...answer, lines: linesOf(answer.body === '' ? [] : ['Content-Length', '5']) }, 5000);
      return (res as unknown as { _header: string })._header;
    };
    expect(headOf(0, { status: 304, body: '' })).toContain('Connection: close');
    expect(headOf(1, { status: 200, body: 'hello' })).toContain('Connection: keep-alive');
  });

  test.each([
    ['a header', ['Location', 'https://example.org/\r\nSet-Cookie: a=b']],
    ['a header name', ['Loca\r\ntion', 'x']],
  ])('rejects %s that would split the response', (_what, headers) => {
    expect(() => linesOf(headers)).toThrow(TypeError);
  });
});
