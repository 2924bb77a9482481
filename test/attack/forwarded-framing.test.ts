// Framing of forwarded requests: a client can neither inject a second request into an upstream connection
// nor remove the framing.
import '../support/real-sockets.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/app/config.js';
import { serve } from '../../src/app/serve.js';
import { fixed } from '../support/fixed.js';
import { startProxy } from '../support/proxy.js';
import { exchange } from '../support/raw-socket.js';
import { type RecordingUpstream, startRecordingUpstream } from '../support/recording-upstream.js';

const HOST = 'Host: proxy.example\r\n';
const HANDLE = '/api/handles/21.T11998/page';
const SMUGGLED = `DELETE /api/handles/21.T11998/victim HTTP/1.1\r\nHost: x\r\n\r\n`;
const LENGTH = `Content-Length: ${SMUGGLED.length}\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const inChunks = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`;
const AUTHORIZATION = 'Authorization: Basic eDp5\r\n';
const CLOSE = 'Connection: close\r\n';

/** Requests that the proxy forwards: for records, for other API paths, and to the reverse lookup. */
const WAYS = [
  `GET ${HANDLE}?publicOnly=false`,
  `HEAD ${HANDLE}?publicOnly=false`,
  `PUT ${HANDLE}`,
  `POST ${HANDLE}`,
  `DELETE ${HANDLE}`,
  'GET /api/handles?prefix=21.T11998',
  'POST /api/handles',
  'GET /api/sessions/this',
  'POST /api/sessions',
  'DELETE /api/sessions/this',
  'GET /api/site',
  'POST /api/verifications',
  'GET /hrls/handles?URL=*',
];

async function startBoth(): Promise<{ upstream: RecordingUpstream; url: string }> {
  const upstream = await startRecordingUpstream();
  onTestFinished(upstream.close);
  const { url } = await startProxy({
    UPSTREAM_URL: upstream.url,
    REVERSE_LOOKUP_URL: upstream.url,
    DELETION_HANDLES: 'true',
    ...fixed({ upstream: { connections: 1 } }),
  });
  return { upstream, url };
}

const fields = (count: number): string => Array.from({ length: count }, (_, at) => `a${at}:\r\n`).join('');

describe('forwarding proxy', () => {
  test.each<[string, string]>([
    ['Connection: content-length', `${HOST}Connection: content-length\r\n${LENGTH}${CLOSE}\r\n${SMUGGLED}`],
    [
      'Connection: Transfer-Encoding',
      `${HOST}Connection: x, Transfer-Encoding\r\n${CHUNKED}${CLOSE}\r\n${inChunks}`,
    ],
    [
      'Connection: content-length, host',
      `${HOST}${LENGTH}Connection: close, Host , CONTENT-LENGTH\r\n\r\n${SMUGGLED}`,
    ],
    [
      'chunks with a trailer',
      `${HOST}${CHUNKED}Trailer: X\r\n${CLOSE}\r\n${inChunks.slice(0, -2)}X: 1\r\n\r\n`,
    ],
    ['Expect', `${HOST}${LENGTH}Expect: 100-continue\r\n${CLOSE}\r\n${SMUGGLED}`],
  ])('preserves the body of a request that has %s', async (_what, rest) => {
    const { upstream, url } = await startBoth();
    for (const way of WAYS) {
      upstream.requests.length = 0;
      await exchange(url, `${way} HTTP/1.1\r\n${rest}`, { isHead: way.startsWith('HEAD') });
      await exchange(url, `GET /api/site HTTP/1.1\r\n${HOST}${CLOSE}\r\n`);
      const seen = upstream.requests.map(({ method, target, body }) => [`${method} ${target}`, body]);
      expect(seen, way).toEqual([
        [way, SMUGGLED],
        ['GET /api/site', ''],
      ]);
    }
    expect(upstream.violations()).toEqual([]);
  });

  test.each(WAYS)('adds only the framing that the method requires to %s without a body', async (way) => {
    const { upstream, url } = await startBoth();
    await exchange(url, `${way} HTTP/1.1\r\n${HOST}${CLOSE}\r\n`, { isHead: way.startsWith('HEAD') });
    expect(upstream.violations()).toEqual([]);
    expect(upstream.requests.map(({ headers }) => headers['content-length'])).toEqual([
      /^(PUT|POST) /.test(way) ? ['0'] : undefined,
    ]);
  });

  test('does not let Connection remove Authorization', async () => {
    const { upstream, url } = await startBoth();
    const taking =
      'Connection: close, authorization, Cookie, host, via\r\nCookie: a=b\r\nVia: 1.1 before\r\n';
    await exchange(url, `GET /api/site HTTP/1.1\r\n${HOST}${AUTHORIZATION}${taking}\r\n`);
    const [{ headers } = { headers: {} }] = upstream.requests;
    expect(headers).toMatchObject({
      authorization: ['Basic eDp5'],
      cookie: ['a=b'],
      host: [upstream.url.slice('http://'.length)],
      via: [expect.stringMatching(/^1\.1 before, 1\.1 handle-resolver-proxy-/) as string],
      'x-forwarded-host': ['proxy.example'],
    });
  });

  const EVERY_ROUTE = [
    ...WAYS,
    `GET ${HANDLE}`,
    'GET /api/v2/handles/21.T11998/page',
    'PUT /api/v2/handles/21.T11998/page',
    'GET /21.T11998/page',
    'OPTIONS /api/site',
    'GET /openapi.json',
    'GET /nowhere',
  ];

  test.each([
    ['a length', `${LENGTH}\r\n${SMUGGLED}`],
    ['chunks', `${CHUNKED}\r\n${inChunks}`],
    ['an expectation', `Expect: 100-continue\r\n${LENGTH}\r\n${SMUGGLED}`],
    ['an unknown expectation', `Expect: x\r\n${LENGTH}\r\n${SMUGGLED}`],
    ['no body', '\r\n'],
  ])(
    'returns 431 and closes the connection for more than 1,000 header fields before %s',
    async (_what, rest) => {
      const { upstream, url } = await startBoth();
      for (const way of EVERY_ROUTE) {
        for (const count of [1000, 2000]) {
          const bytes = `${way} HTTP/1.1\r\n${HOST}${fields(count)}${rest}${SMUGGLED}`;
          const read = (isHead: boolean) => exchange(url, bytes, { isHead });
          // Late releases of Node.js 22 and 24 refuse the fields before they tell the method: then HEAD gets a body too.
          const { answers, closed } = await read(way.startsWith('HEAD')).catch(() => read(false));
          expect([answers.map(({ status }) => status), closed], `${way}, ${count}`).toEqual([[431], true]);
          expect(answers[0]?.headers['connection']).toBe('close');
        }
      }
      expect(upstream.requests).toEqual([]);
      expect(upstream.violations()).toEqual([]);
    },
  );

  test('returns 431 for more than 1,000 header fields on the admin listener', async () => {
    const { upstream } = await startBoth();
    const env = { UPSTREAM_URL: upstream.url, PORT: '0', ADMIN_PORT: '0', LOG_LEVEL: 'silent' };
    const service = await serve(loadConfig({ env, readFile: () => '' }));
    onTestFinished(() => service.stop());
    const { answers } = await exchange(
      service.adminUrl,
      `GET /metrics HTTP/1.1\r\n${HOST}${fields(2000)}\r\n`,
    );
    expect(answers.map(({ status }) => status)).toEqual([431]);
  });

  test('accepts 1,000 header fields', async () => {
    const { upstream, url } = await startBoth();
    const head = `PUT ${HANDLE} HTTP/1.1\r\n${HOST}${fields(997)}${CLOSE}Content-Length: 2\r\n\r\n[]`;
    const { answers } = await exchange(url, head);
    expect(answers.map(({ status }) => status)).toEqual([200]);
    expect(upstream.requests[0]).toMatchObject({ body: '[]', headers: { a996: [''] } });
  });

  test('rejects too many header fields only after it has sent the responses to earlier requests', async () => {
    const { url } = await startBoth();
    const first = `PUT ${HANDLE} HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\n[]`;
    const { answers } = await exchange(url, `${first}GET ${HANDLE} HTTP/1.1\r\n${HOST}${fields(2000)}\r\n`);
    expect(answers.map(({ status }) => status)).toEqual([200, 431]);
  });

  test('returns 417 for an unknown Expect, or 431 when the request also has too many header fields', async () => {
    const { url, upstream } = await startBoth();
    const head = `PUT ${HANDLE} HTTP/1.1\r\n${HOST}Expect: x\r\n`;
    const flooded = await exchange(url, `${head}${fields(2000)}${LENGTH}\r\n${SMUGGLED}`);
    expect(flooded.answers.map(({ status }) => status)).toEqual([431]);
    const { answers } = await exchange(url, `${head}${CLOSE}${LENGTH}\r\n${SMUGGLED}`);
    expect(answers.map(({ status }) => status)).toEqual([417]);
    expect(upstream.requests).toEqual([]);
  });
});
