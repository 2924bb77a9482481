// Every response forbids browsers to guess its media type, which could turn JSON of a record into a script.
import '../support/real-sockets.js';
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import type { Question } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { nativeRequest } from '../support/native-messages.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { exchange } from '../support/raw-socket.js';
import { USER01, urlTo } from '../support/v2.js';

const demo = await startDemoServer();

const HANDLE = '21.T11998/page';
const PATH = `/api/handles/${HANDLE}`;
const V2 = `/api/v2/handles/${HANDLE}`;
const Origin = 'https://app.example.org';
const NATIVE = { Accept: 'application/x-hdl-message', 'Content-Type': 'application/x-hdl-message' };
const JSON_BODY = { 'Content-Type': 'application/json' };

const start = (env: Record<string, string> = {}): Promise<Proxy> =>
  startProxy({ UPSTREAM_URL: demo.url, V2_ANONYMOUS_READ: 'true', ...env });

type Row = [status: number, target: string, question?: Question];

const PUBLIC: Row[] = [
  [200, PATH],
  [200, `${PATH}?pretty`],
  [200, `${PATH}?callback=f`],
  [200, `${PATH}?index=1`],
  [200, `${PATH}?auth=true`],
  [200, PATH, { method: 'HEAD' }],
  [200, PATH, { headers: { Origin } }],
  [304, PATH, { headers: { 'If-None-Match': '*' } }],
  [404, '/api/handles/21.T11998/none'],
  [400, '/api/handles/%zz'],
  [400, '/api/handles/%zz?callback=f'],
  [400, `${PATH}?index=x`],
  [404, '/api/foo'],
  [405, '/api/resolve', { method: 'DELETE' }],
  [200, PATH, { method: 'OPTIONS' }],
  [200, PATH, { method: 'OPTIONS', headers: { Origin, 'Access-Control-Request-Method': 'GET' } }],
  [200, `${PATH}?publicOnly=false`],
  [403, `${PATH}?callback=f`, { headers: { Authorization: USER01 } }],
  [200, PATH, { headers: { Authorization: USER01 } }],
  [
    201,
    '/api/handles/21.T11998/new',
    { method: 'PUT', headers: { ...JSON_BODY, Authorization: USER01 }, body: '[]' },
  ],
  [403, PATH, { method: 'DELETE', headers: { Authorization: USER01 } }],
  [201, '/api/sessions', { method: 'POST' }],
  [200, '/api/handles?prefix=21.T11998', { headers: { Authorization: USER01 } }],
  [200, `/api/handles?handle=${HANDLE}`],
  [200, '/api/resolve', { method: 'POST', body: `{"handles":["${HANDLE}","x"]}` }],
  [400, '/api/resolve', { method: 'POST', body: '{' }],
  [200, V2],
  [304, V2, { headers: { 'If-None-Match': '*' } }],
  [204, V2, { method: 'OPTIONS' }],
  [404, '/api/v2/handles/21.T11998/none'],
  [401, '/api/v2/handles/21.T11998/', { method: 'POST' }],
  [
    201,
    '/api/v2/handles/21.T11998/',
    { method: 'POST', headers: { ...JSON_BODY, Authorization: USER01 }, body: JSON.stringify([urlTo('x')]) },
  ],
  [302, `/${HANDLE}`],
  [302, `/${HANDLE}?n=1`, { method: 'POST' }],
  [302, `/?hdl=${HANDLE}`],
  [200, `/${HANDLE}?noredirect`],
  [200, `/${HANDLE}?action=showurls`],
  [404, '/21.T11998/none'],
  [404, '/21.T11998/none', { headers: { Accept: 'application/json' } }],
  [
    302,
    '/',
    {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: `hdl=${HANDLE}`,
    },
  ],
  [200, '/', { method: 'POST', headers: NATIVE, body: nativeRequest(HANDLE) }],
  [200, '/'],
  [200, '/robots.txt'],
  [200, '/openapi'],
  [200, '/openapi.json'],
];

const ADMIN: [status: number, method: 'get' | 'post' | 'options', target: string][] = [
  [200, 'get', '/healthz'],
  [200, 'get', '/metrics'],
  [200, 'get', '/stats'],
  [200, 'get', '/'],
  [200, 'get', '/openapi.json'],
  [404, 'get', '/none'],
  [405, 'post', '/stats'],
  [204, 'options', '/stats'],
  [400, 'post', '/purge'],
];

const INVALID: [status: number, request: string][] = [
  [400, 'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  [400, 'GET / HTTP/1.1\r\nbroken\r\n\r\n'],
  [501, 'SWEEP / HTTP/1.1\r\nHost: x\r\n\r\n'],
  [501, 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'],
  [417, 'GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n\r\n'],
  [414, `GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
];

const NOSNIFF = { 'x-content-type-options': 'nosniff' };

describe('X-Content-Type-Options: nosniff', () => {
  test.each(PUBLIC)('is in a %i for %s, and in its repetition', async (status, target, question) => {
    const proxy = await start();
    const first = await proxy.ask(target, question);
    expect(first).toMatchObject({ status, headers: NOSNIFF });
    expect(await proxy.ask(target, question)).toMatchObject({ headers: NOSNIFF });
  });

  test.each(INVALID)('is in a %i for an invalid request', async (status, bytes) => {
    const { answers } = await exchange((await start()).url, bytes);
    expect(answers).toMatchObject([{ status, headers: NOSNIFF }]);
  });

  test.each(ADMIN)('is in a %i of the admin listener for %s %s', async (status, method, target) => {
    const { app } = await start();
    expect(await request(app.admin)[method](target)).toMatchObject({ status, headers: NOSNIFF });
  });
});
