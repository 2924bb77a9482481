// test/property/cached-responses.test.ts compares the bytes of cached responses.
import { once } from 'node:events';
import { Agent, IncomingMessage, ServerResponse, createServer, request } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type RawResponse, type SendRaw, createSendRaw, linesOf } from '../../src/http/raw-response.js';

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

  describe('in a program with middleware', () => {
    const answer = { status: 200, lines: linesOf(['Content-Length', '5']), body: 'hello' };

    /** Starts a server whose middleware runs first. Returns a function that asks, on a new connection each time. */
    async function serveAfter(
      send: SendRaw,
      middleware: (res: ServerResponse) => void,
      keepAliveTimeout = 5000,
    ): Promise<() => Promise<IncomingMessage & { body: string }>> {
      const server = createServer({ keepAliveTimeout }, (_req, res) => {
        middleware(res);
        send(res, answer, 5000);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      const { port } = server.address() as AddressInfo;
      return async () => {
        const asked = request({ port, agent: new Agent({ keepAlive: true }) }).end();
        const [got] = (await once(asked, 'response')) as [IncomingMessage];
        return Object.assign(got, { body: await text(got) });
      };
    }

    /** Sets the headers before those of middleware, as the package on-headers does. */
    function setAll(res: ServerResponse, headers: readonly string[]): void {
      for (const [at, name] of headers.entries())
        if (at % 2 === 0) res.setHeader(name, headers[at + 1] ?? '');
    }

    test('repeats no header that middleware adds to a response, such as the cookie of a session', async () => {
      const send = createSendRaw(Date.now);
      let session = 0;
      const ask = await serveAfter(send, (res) => {
        const writeHead = res.writeHead.bind(res);
        res.writeHead = ((status: number, headers: string[]) => {
          setAll(res, headers);
          res.setHeader('Set-Cookie', `session=${++session}`);
          return writeHead(status);
        }) as typeof writeHead;
      });
      const cookies = [await ask(), await ask(), await ask()].map(({ headers }) => headers['set-cookie']);
      expect(cookies).toEqual([['session=1'], ['session=2'], ['session=3']]);
      const askWithout = await serveAfter(send, () => undefined);
      for (const { headers } of [await askWithout(), await askWithout()])
        expect(headers['set-cookie']).toBeUndefined();
    });

    test('repeats no header of a program that replaces writeHead for all responses', async () => {
      const writeHead = Reflect.get(ServerResponse.prototype, 'writeHead') as (
        status: number,
      ) => ServerResponse;
      let trace = 0;
      const written = vi.spyOn(ServerResponse.prototype, 'writeHead').mockImplementation(function (
        this: ServerResponse,
        status: number,
        headers: unknown,
      ) {
        setAll(this, headers as string[]);
        this.setHeader('Trace', ++trace);
        return writeHead.call(this, status);
      } as ServerResponse['writeHead']);
      onTestFinished(() => written.mockRestore());
      const ask = await serveAfter(createSendRaw(Date.now), () => undefined);
      const traces = [await ask(), await ask()].map(({ headers }) => headers['trace']);
      expect(traces).toEqual(['1', '2']);
    });

    test('passes the body to middleware that replaces end', async () => {
      const bodies: unknown[] = [];
      const send = createSendRaw(Date.now);
      const ask = await serveAfter(send, (res) => {
        const end = res.end.bind(res);
        res.end = ((body: string, encoding: BufferEncoding) => {
          bodies.push(body);
          return end(body, encoding);
        }) as typeof end;
      });
      await (
        await serveAfter(send, () => undefined)
      )();
      expect([(await ask()).body, (await ask()).body]).toEqual(['hello', 'hello']);
      expect(bodies).toEqual(['hello', 'hello']);
    });

    test('names the keep-alive timeout of the server that has the connection', async () => {
      const send = createSendRaw(Date.now);
      const short = await serveAfter(send, () => undefined, 5000);
      const long = await serveAfter(send, () => undefined, 77_000);
      for (const [ask, timeout] of [
        [short, 5],
        [long, 77],
        [short, 5],
      ] as const)
        expect((await ask()).headers['keep-alive']).toBe(`timeout=${timeout}`);
    });
  });

  test.each([
    ['a header', ['Location', 'https://example.org/\r\nSet-Cookie: a=b']],
    ['a header name', ['Loca\r\ntion', 'x']],
  ])('rejects %s that would split the response', (_what, headers) => {
    expect(() => linesOf(headers)).toThrow(TypeError);
  });
});
