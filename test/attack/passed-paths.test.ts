// Forwarded paths that name no handle: no server behind the proxy can normalise them to a handle.
import '../support/real-sockets.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startProxy } from '../support/proxy.js';
import { type RawAnswer, exchange } from '../support/raw-socket.js';
import { type RecordingUpstream, startRecordingUpstream } from '../support/recording-upstream.js';

async function startBoth(): Promise<{
  upstream: RecordingUpstream;
  send: (requestLine: string, headers?: string) => Promise<RawAnswer>;
}> {
  const upstream = await startRecordingUpstream();
  onTestFinished(upstream.close);
  const { url } = await startProxy({ UPSTREAM_URL: upstream.url, REVERSE_LOOKUP_URL: upstream.url });
  return {
    upstream,
    async send(requestLine, headers = '') {
      const bytes = `${requestLine} HTTP/1.1\r\nHost: proxy.example\r\n${headers}Connection: close\r\n\r\n`;
      const isHead = requestLine.startsWith('HEAD');
      const { answers } = await exchange(url, Buffer.from(bytes, 'latin1'), { isHead });
      return answers[0]!;
    },
  };
}

const targetsOf = ({ requests }: RecordingUpstream): string[] =>
  requests.map(({ method, target }) => `${method} ${target}`);

const LOGIN = 'Authorization: Basic MzAwJTNBMjEuVDExOTk4L1VTRVIwMTpwYXNzd29yZA==\r\n';
const VICTIM = 'handles/21.T11998/victim';

/** Spellings of `..` and similar segments that some server normalises. */
const SPELLINGS = [
  '..',
  '.',
  '%2e%2e',
  '%2E.',
  '.%2e',
  '%252e%252E',
  '%25252e%25252e',
  '%2525252525252e',
  '%25%32%65.',
  '%c0%ae%c0%ae',
  '%C0%AE.',
  '%e0%80%ae%e0%80%ae',
  '%f0%80%80%ae.',
  '..;',
  '..;a=b',
  '..%3b',
  '..%253Bx',
  '.;/..',
  '%2e%2e%2f',
  '..%2f..',
  '..%5c',
  '..\\',
  '\\..',
  '%5c..%5c',
  '%255c',
  '%c1%9c',
  '%c0%af..',
  '',
  ';',
  '%2f',
  '%252f',
  'x%2f%2fy',
  '%00',
  '..%00',
  '%2500',
  '%c0%80',
  '%0d%0a',
  '%zz',
  '%',
  '%u002e%u002e',
  '#',
];
const PLACES = ['/api/sessions', '/api/site', '/api/prefixes', '/api/verifications/x', '/hrls/handles'];
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];

describe('request path', () => {
  test.each(SPELLINGS)('is rejected with 400 when a segment is %j', async (spelling) => {
    const { upstream, send } = await startBoth();
    for (const place of PLACES) {
      for (const method of ['GET', 'DELETE']) {
        for (const end of [`/${VICTIM}`, `/${spelling}/${VICTIM}`, '/']) {
          const { status } = await send(`${method} ${place}/${spelling}${end}`);
          expect(status, `${method} ${place}/${spelling}${end}`).toBe(400);
        }
      }
    }
    expect(targetsOf(upstream)).toEqual([]);
  });

  test.each([
    '/api/sessions/..',
    '/api/site/.',
    '/api/sessions//this',
    '/hrls/handles/%2e%2e',
    '/hrls//handles',
  ])('is rejected with 400: %s', async (path) => {
    const { upstream, send } = await startBoth();
    const { status, body } = await send(`GET ${path}`);
    expect(status).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ responseCode: 4 });
    expect(targetsOf(upstream)).toEqual([]);
  });

  test.each([
    ['DELETE http://x\\api\\sessions/api/handles/21.T11998/victim', 400],
    ['DELETE http://x\\@y/api/handles/21.T11998/victim', 400],
    ['DELETE http://x@y/api/handles/21.T11998/victim', 403],
    ['DELETE http://proxy.example/api/sessions/../handles/21.T11998/victim', 400],
    ['DELETE http://proxy.example/api/sessions/%2e%2e/handles/21.T11998/victim', 400],
    ['DELETE HTTP://x:1/api/site/..\\handles/21.T11998/victim', 400],
    ['PUT http://x#/api/sessions/this/..', 400],
    ['DELETE /api/handles/#21.T11998/victim', 403],
    ['DELETE /api/handles#/21.T11998/victim', 404],
    ['DELETE /api\\handles/21.T11998/victim', 405],
    ['DELETE /api\\handles/21.T11998/victim#', 405],
    ['DELETE /api/sessions\\..\\handles/21.T11998/victim', 404],
    ['DELETE /api/sessions/\\..\\handles/21.T11998/victim#', 400],
    ['DELETE //api/handles/21.T11998/victim', 403],
  ])('is not forwarded: %s', async (requestLine, status) => {
    const { upstream, send } = await startBoth();
    expect((await send(requestLine)).status).toBe(status);
    // Before it rejects a deletion, the proxy may read the handle to check whether it exists.
    const reads = /^GET \/api\/handles\/(?:%23)?21\.T11998\/victim/;
    expect(targetsOf(upstream).filter((seen) => !reads.test(seen))).toEqual([]);
  });

  describe('with special characters in the handle', () => {
    test.each([
      ['21.T11998/a/../b', '21.T11998%2Fa%2F..%2Fb'],
      ['21.T11998/a/%2e%2e/b', '21.T11998%2Fa%2F..%2Fb'],
      ['21.T11998//a', '21.T11998%2F%2Fa'],
      ['21.T11998/a%5Cb\\c', '21.T11998/a%5Cb%5Cc'],
      ['21.T11998/..;x', '21.T11998/..%3Bx'],
      ['21.T11998/%252e%252e', '21.T11998/%252e%252e'],
      ['21.T11998/a#b', '21.T11998/a%23b'],
    ])('is forwarded with the handle intact: %s', async (path, sent) => {
      const { upstream, send } = await startBoth();
      for (const target of [`/api/handles/${path}`, `http://proxy.example/api/handles/${path}`]) {
        upstream.requests.length = 0;
        expect((await send(`PUT ${target}`)).status).toBe(200);
        expect(targetsOf(upstream)).toEqual([`PUT /api/handles/${sent}`]);
      }
    });
  });

  describe('is rejected with 405 for methods that its endpoint does not allow', () => {
    test.each([
      ['/api/handles?prefix=21.T11998', ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']],
      ['/api/handles/?prefix=21.T11998', ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']],
      ['/api/sessions', ['POST']],
      ['/api/sessions/', ['POST']],
      ['/api/sessions/other', ['POST']],
      ['/api/sessions/this', ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']],
      ['/api/site', ['GET', 'HEAD', 'POST']],
      ['/api/prefixes', ['GET', 'HEAD', 'POST', 'DELETE']],
      ['/api/prefixes/0.NA/21.T1', ['POST', 'DELETE']],
      ['/api/verifications', ['GET', 'HEAD', 'POST']],
      ['/hrls/handles?URL=*', ['GET', 'HEAD']],
      ['/hrls', ['GET', 'HEAD']],
    ])('%s', async (target, allowed) => {
      const { upstream, send } = await startBoth();
      for (const method of METHODS) {
        const { status, headers } = await send(`${method} ${target}`);
        expect(status, method).toBe(allowed.includes(method) ? 200 : 405);
        if (status === 405) expect(headers['allow']).toBe([...allowed, 'OPTIONS'].join(', '));
      }
      expect(targetsOf(upstream)).toEqual(
        METHODS.filter((method) => allowed.includes(method)).map((method) => `${method} ${target}`),
      );
    });

    test('with a JSON body that contains a response code', async () => {
      const { send } = await startBoth();
      const { body, headers } = await send('DELETE /api/site');
      expect(JSON.parse(body)).toEqual({
        responseCode: 4,
        message: 'Method not allowed: DELETE',
        code: 'METHOD_NOT_ALLOWED',
      });
      expect(headers).toMatchObject({ 'cache-control': 'no-store' });
    });
  });

  test.each(['..', '.', '%2e%2e', '%2E'])(
    'causes no reverse lookup for the ePIC v2 collection %s',
    async (prefix) => {
      const { upstream, send } = await startBoth();
      const { status } = await send(`GET /api/v2/handles/${prefix}/?URL=*`, LOGIN);
      expect(status).toBe(400);
      expect(targetsOf(upstream)).toEqual([]);
    },
  );
});
