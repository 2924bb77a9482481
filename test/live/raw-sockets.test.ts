// Malformed HTTP over raw sockets: the response is always HTTP with JSON, never a stack trace.
import { once } from 'node:events';
import { expect, describe, onTestFinished, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { type Exchange, type RawAnswer, exchange, openSocket } from '../support/raw-socket.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';
const HOST = 'Host: proxy.example\r\n';

const start = async (env: Record<string, string> = {}): Promise<string> =>
  (await startProxy({ UPSTREAM_URL: demo.url, ...env })).url;

/** Returns the single response on a connection that was then closed. */
function onlyAnswer({ answers, closed }: Exchange): RawAnswer {
  expect(closed).toBe(true);
  expect(answers).toHaveLength(1);
  return answers[0]!;
}

function expectFailure(answer: RawAnswer, status: number, message?: string): void {
  expect(answer.status, answer.body).toBe(status);
  expect(answer.headers['content-type']).toBe('application/json;charset=utf-8');
  expect(answer.headers['cache-control']).toBe('no-store');
  // RFC 9110 §6.6.1 requires it, also of responses without a request.
  expect(Date.parse(answer.headers['date'] ?? '')).not.toBeNaN();
  const body = JSON.parse(answer.body) as Record<string, unknown>;
  expect(body).toEqual({
    responseCode: 4,
    message: message ?? (expect.any(String) as string),
    // A 501 has no code, as at a Handle server.
    ...(status !== 501 && { code: expect.any(String) as string }),
  });
  expect(answer.body).not.toMatch(/node:|\.js|\.ts|Error|HPE_/);
}

const one = { answers: 1 };

describe('malformed requests over raw sockets', () => {
  describe('unsupported method', () => {
    test.each(['FOO', 'BREW', 'get', 'M-SEARCH', "X!#$%&'*+-.^_`|~9"])(
      'returns 501 and names the method, which Node does not know: %s',
      async (method) => {
        const got = await exchange(await start(), `${method} ${PATH} HTTP/1.1\r\n${HOST}\r\n`, one);
        expectFailure(got.answers[0]!, 501, `Unknown method ${method}`);
      },
    );

    test.each(['PROPFIND', 'PATCH', 'LOCK', 'PURGE', 'LINK'])(
      'returns 501 and names the method, even when Node knows it: %s',
      async (method) => {
        const got = await exchange(await start(), `${method} ${PATH} HTTP/1.1\r\n${HOST}\r\n`, one);
        expectFailure(got.answers[0]!, 501, `Unknown method ${method}`);
      },
    );

    test('returns 405 for TRACE, and echoes nothing of the request', async () => {
      const bytes = `TRACE ${PATH} HTTP/1.1\r\n${HOST}X-Secret: abracadabra\r\n\r\n`;
      const { answers } = await exchange(await start(), bytes, one);
      expectFailure(answers[0]!, 405);
      expect(JSON.stringify(answers)).not.toContain('abracadabra');
    });

    test('returns an error for CONNECT, and opens no tunnel', async () => {
      const bytes = `CONNECT 127.0.0.1:22 HTTP/1.1\r\n${HOST}\r\n`;
      const { answers } = await exchange(await start(), bytes);
      for (const { status } of answers) expect(status).toBeGreaterThanOrEqual(400);
    });
  });

  describe('Upgrade header', () => {
    test('is ignored', async () => {
      const bytes = `GET ${PATH} HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`;
      const { answers } = await exchange(await start(), bytes, one);
      expect(answers[0]!.status).toBe(200);
    });
  });

  describe('non-HTTP bytes', () => {
    test.each([
      ['noise', Buffer.from([0, 1, 2, 255, 254, 13, 10, 13, 10])],
      ['a TLS hello', Buffer.from('16030100f8010000f40303', 'hex')],
      ['a line without target', 'GET\r\n\r\n'],
      ['a target with a space', `GET /api/handles/21.T1/a b HTTP/1.1\r\n${HOST}\r\n`],
      ['a different protocol', `GET ${PATH} SPDY/3\r\n\r\n`],
      ['a future version', `GET ${PATH} HTTP/7.3\r\n${HOST}\r\n`],
      ['a header without name', `GET ${PATH} HTTP/1.1\r\n: nothing\r\n\r\n`],
      ['a header name with a space', `GET ${PATH} HTTP/1.1\r\nContent-Length : 3\r\n\r\n`],
      ['a header with a null byte', `GET ${PATH} HTTP/1.1\r\nX: a\0b\r\n\r\n`],
      ['a folded header', `GET ${PATH} HTTP/1.1\r\nX: a\r\n b\r\n\r\nrubbish`],
      ['the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['an overlong method', `${'A'.repeat(5000)} / HTTP/1.1\r\n\r\n`],
      ['a method with markup', `<script>alert(1)</script> / HTTP/1.1\r\n\r\n`],
    ])('return 400 and close the connection: %s', async (_what, bytes) => {
      const { answers, closed } = await exchange(await start(), bytes);
      expect(closed).toBe(true);
      expectFailure(answers.at(-1)!, 400);
    });

    test.each([
      ['noise', '\0\0\0rubbish\r\n\r\n', 400],
      ['noise in several packets', `${'rubbish'.repeat(30_000)}\r\n\r\n`, 400],
    ])('return 400 after the responses to the preceding valid requests: %s', async (_what, noise, status) => {
      const good = `GET ${PATH} HTTP/1.1\r\n${HOST}\r\n`;
      const { answers, closed } = await exchange(await start(), good + good + noise);
      expect(closed).toBe(true);
      expect(answers.map((answer) => answer.status)).toEqual([200, 200, status]);
      expectFailure(answers[2]!, status);
    });
  });

  describe('oversized request', () => {
    test('returns 431 for a large header', async () => {
      const headers = `X-Large: ${'x'.repeat(100_000)}\r\n`;
      const got = await exchange(await start(), `GET ${PATH} HTTP/1.1\r\n${HOST}${headers}\r\n`);
      expectFailure(onlyAnswer(got), 431);
    });

    test('returns 431 for many small headers', async () => {
      const headers = Array.from({ length: 5000 }, (_, at) => `X-${at}: ${'y'.repeat(10)}\r\n`).join('');
      const got = await exchange(await start(), `GET ${PATH} HTTP/1.1\r\n${HOST}${headers}\r\n`);
      expectFailure(onlyAnswer(got), 431);
    });

    test.each([8193, 20_000, 200_000, 2_000_000])(
      'returns 414 for a request line of %i bytes',
      async (length) => {
        const line = (target: string): string => `GET ${target} HTTP/1.1`;
        const target = `/api/handles/21.T11998/${'a'.repeat(length - line('/api/handles/21.T11998/').length)}`;
        const { answers } = await exchange(await start(), `${line(target)}\r\n${HOST}\r\n`, one);
        expectFailure(answers[0]!, 414);
      },
    );

    test('is rejected when its request line arrives in parts', async () => {
      const url = await start();
      const socket = await openSocket(url);
      socket.write(`GET ${PATH}?${'q'.repeat(20_000)}`);
      // A response to a different request shows that the proxy has read the first part.
      await exchange(url, `GET ${PATH} HTTP/1.1\r\n${HOST}\r\n`, one);
      socket.write(`${'q'.repeat(20_000)} HTTP/1.1\r\n\r\n`);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 (414|431) /);
    });

    test('returns 414 for a long query, even with an unknown path or method', async () => {
      const url = await start();
      for (const begin of ['GET /api/nothing', 'DELETE /api/handles/21.T1/a', 'OPTIONS /api']) {
        const bytes = `${begin}?${'q'.repeat(9000)} HTTP/1.1\r\n${HOST}\r\n`;
        expectFailure((await exchange(url, bytes, one)).answers[0]!, 414);
      }
    });
  });

  describe('unusual request', () => {
    test('is accepted when its request line has 8192 bytes, the maximum', async () => {
      const before = `GET ${PATH}?type=URL&x=`;
      const line = `${before}${'x'.repeat(8192 - before.length - ' HTTP/1.1'.length)} HTTP/1.1`;
      expect(line).toHaveLength(8192);
      const { answers } = await exchange(await start(), `${line}\r\n${HOST}\r\n`, one);
      expect(answers[0]!.status).toBe(200);
    });

    test('is answered over HTTP/1.0, after which the connection closes', async () => {
      const answer = onlyAnswer(await exchange(await start(), `GET ${PATH} HTTP/1.0\r\n\r\n`));
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.body)).toMatchObject({ responseCode: 1, handle: '21.T11998/page' });
    });

    test('is answered over HTTP/1.1 without Host, as sent by old clients', async () => {
      const { answers } = await exchange(await start(), `GET ${PATH} HTTP/1.1\r\n\r\n`, one);
      expect(answers[0]!.status).toBe(200);
    });

    test.each(['http://proxy.example', 'HTTP://proxy.example:8080', 'https://proxy.example'])(
      'is accepted with an absolute-form target: %s',
      async (origin) => {
        const url = await start();
        const bytes = (target: string): string => `GET ${target}?type=URL HTTP/1.1\r\n${HOST}\r\n`;
        const absolute = await exchange(url, bytes(`${origin}${PATH}`), one);
        const plain = await exchange(url, bytes(PATH), one);
        expect(absolute.answers[0]!.status).toBe(200);
        expect(absolute.answers[0]!.body).toBe(plain.answers[0]!.body);
      },
    );

    test('returns the headers of GET without a body when it is a HEAD', async () => {
      const url = await start();
      const got = await exchange(url, `GET ${PATH} HTTP/1.1\r\n${HOST}\r\n`, one);
      const head = await exchange(url, `HEAD ${PATH} HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`, {
        isHead: true,
      });
      expect(onlyAnswer(head).headers['content-length']).toBe(got.answers[0]!.headers['content-length']);
      expect(onlyAnswer(head).headers['etag']).toBe(got.answers[0]!.headers['etag']);
    });

    test('is answered in order when pipelined', async () => {
      const names = ['page', 'nobody', 'located', 'alias', 'empty'];
      const get = (name: string, more = ''): string =>
        `GET /api/handles/21.T11998/${name} HTTP/1.1\r\n${HOST}${more}\r\n`;
      const url = await start();
      demo.delay(50);
      onTestFinished(() => {
        demo.heal();
      });
      // Only the third request is a hit; the others wait for the upstream.
      for (let times = 0; times < 3; times++) await exchange(url, get('located'), one);
      const { answers } = await exchange(url, names.map((name) => get(name)).join(''), {
        answers: names.length,
      });
      const handles = answers.map(({ body }) => (JSON.parse(body) as { handle: string }).handle);
      expect(handles).toEqual(names.map((name) => `21.T11998/${name}`));
      expect(answers.map(({ status }) => status)).toEqual([200, 404, 200, 200, 200]);
    });

    test('is answered when it arrives byte by byte', async () => {
      const socket = await openSocket(await start());
      socket.setNoDelay(true);
      for (const byte of `GET ${PATH} HTTP/1.1\r\n${HOST}\r\n`) socket.write(byte);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    });
  });

  test('block no other client when they stop half-way', async () => {
    const url = await start();
    const stuck = await openSocket(url);
    stuck.write(`GET ${PATH} HTTP/1.1\r\nHost: pro`);
    const { answers } = await exchange(url, `GET ${PATH} HTTP/1.1\r\n${HOST}\r\n`, one);
    expect(answers[0]!.status).toBe(200);
  });

  test('do not affect other clients when their client disconnects half-way', async () => {
    const url = await start();
    for (const bytes of [
      'G',
      `GET ${PATH} HTTP/1.1\r\n`,
      `PUT ${PATH} HTTP/1.1\r\nContent-Length: 9\r\n\r\n{`,
    ]) {
      const socket = await openSocket(url);
      socket.write(bytes);
      socket.resetAndDestroy();
    }
    const { answers } = await exchange(url, `GET ${PATH} HTTP/1.1\r\n${HOST}\r\n`, one);
    expect(answers[0]!.status).toBe(200);
  });
});
