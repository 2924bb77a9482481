// Requests and responses of ePIC v2, redirects and the admin API match the OpenAPI document.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { ask, type Question } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { ADMIN_DOCUMENT, complaintsAbout, complaintsAboutRequest } from '../support/openapi.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { USER01, USER02, urlTo } from '../support/v2.js';

const demo = await startDemoServer();
beforeEach(() => {
  demo.reset();
});

/** Checks a response, and the request if it succeeded, against the document. Returns the status. */
async function checked(
  url: string,
  target: string,
  question: Question & { body?: string } = {},
  document?: typeof ADMIN_DOCUMENT,
): Promise<number> {
  const { status, headers, text } = await ask(url, target, question);
  const { method = 'GET', body: sent } = question;
  const exchange = { method, target, sent, status, contentType: headers['content-type'], body: text };
  expect(complaintsAbout(exchange, document), `${method} ${target}: ${status} ${text}`).toEqual([]);
  if (status < 300) expect(complaintsAboutRequest(exchange, document)).toEqual([]);
  return status;
}

const before = (env: Record<string, string> = {}): Promise<Proxy> =>
  startProxy({ UPSTREAM_URL: demo.url, V2_PREFIXES: '21.T11998', ...env });

const HANDLE = '/api/v2/handles/21.T11998/OPENAPI';
const as = (login: string, more: Record<string, string> = {}): Record<string, string> => ({
  Authorization: login,
  'Content-Type': 'application/json',
  ...more,
});
const FORM = 'application/x-www-form-urlencoded';
const values = JSON.stringify([
  { idx: 1, ...urlTo('a'), ttl_type: 0, ttl: 3600, refs: [], privs: 'rwr-' },
  { type: 'DESC', data: Buffer.from('text').toString('base64'), refs: ['1:21.T11998/page'] },
]);

describe('OpenAPI conformance', () => {
  test('holds for an ePIC v2 record from creation to deletion', async () => {
    const { url } = await before({ DELETION_HANDLES: 'true' });
    const put = { method: 'PUT', headers: as(USER01), body: values };
    expect(await checked(url, HANDLE, { ...put, headers: as(USER01, { 'If-None-Match': '*' }) })).toBe(201);
    expect(await checked(url, HANDLE, put)).toBe(204);
    expect(await checked(url, HANDLE, { ...put, headers: as(USER01, { 'If-None-Match': '*' }) })).toBe(412);
    expect(await checked(url, HANDLE, { headers: as(USER01) })).toBe(200);
    const { headers } = await ask(url, HANDLE, { headers: as(USER01) });
    const known = as(USER01, { 'If-None-Match': headers.etag ?? '' });
    expect(await checked(url, HANDLE, { headers: known })).toBe(304);
    expect(
      await checked(url, '/api/v2/handles/21.T11998/', { method: 'POST', headers: as(USER01), body: values }),
    ).toBe(201);
    expect(await checked(url, '/api/v2/handles/21.T11998', { headers: as(USER01) })).toBe(200);
    expect(await checked(url, '/api/v2/handles/21.T11998?URL=*a', { headers: as(USER01) })).toBe(200);
    expect(
      await checked(url, '/api/v2/handles/21.T11998?URL=*a', { headers: as(USER01, { Depth: '1' }) }),
    ).toBe(200);
    expect(await checked(url, '/api/v2/handles/', { headers: as(USER01) })).toBe(200);
    expect(await checked(url, HANDLE, { method: 'DELETE', headers: as(USER01) })).toBe(204);
    expect(await checked(url, HANDLE, { headers: as(USER01) })).toBe(404);
  });

  test('holds for rejected ePIC v2 requests', async () => {
    const { url } = await before();
    const put = { method: 'PUT', headers: as(USER01), body: values };
    expect(await checked(url, HANDLE, { ...put, headers: {} })).toBe(401);
    expect(await checked(url, HANDLE, { ...put, headers: as('Basic eDp5') })).toBe(401);
    expect(await checked(url, HANDLE, { ...put, headers: as(USER02) })).toBe(403);
    expect(
      await checked(url, HANDLE, { ...put, headers: as(USER01, { 'Content-Type': 'text/plain' }) }),
    ).toBe(415);
    expect(await checked(url, HANDLE, { ...put, body: '{}' })).toBe(400);
    expect(await checked(url, '/api/v2/handles/21.T11998', { method: 'GET', headers: as(USER02) })).toBe(403);
    expect(
      await checked(url, '/api/v2/handles/21.T11998/page', { method: 'DELETE', headers: as(USER01) }),
    ).toBe(403);
  });

  test('holds for an unreachable Handle server on all three interfaces', async () => {
    const { url } = await startProxy({ UPSTREAM_URL: 'http://127.0.0.1:1' });
    expect(await checked(url, HANDLE, { headers: as(USER01) })).toBe(502);
    expect(await checked(url, '/api/handles/21.T11998/page')).toBe(502);
    expect(await checked(url, '/21.T11998/page')).toBe(502);
    expect(await checked(url, '/21.T11998/page', { headers: { Accept: 'application/json' } })).toBe(502);
  });

  test.each([
    ['/21.T11998/page', 302],
    ['/21.T11998/page?noredirect', 200],
    ['/21.T11998/page?action=showurls', 200],
    ['/21.T11998/page?action=api', 200],
    ['/21.T11998/alias', 301],
    ['/21.T11998/nothing', 404],
    ['/99.T1/nothing', 404],
  ])('holds for the redirect endpoint: %s with status %d', async (target, status) => {
    const { url } = await before();
    expect(await checked(url, target)).toBe(status);
  });

  test.each<[target: string, status: number, question?: Question & { body?: string }]>([
    ['/', 200],
    ['/?hdl=21.T11998/page', 302],
    ['/', 302, { method: 'POST', headers: { 'Content-Type': FORM }, body: 'hdl=21.T11998/page' }],
    ['/21.T11998/page', 302, { method: 'HEAD' }],
    ['/21.T11998/page', 302, { method: 'POST' }],
    ['/openapi', 200],
    ['/openapi.json', 200],
    ['/api/handles/21.T11998/page', 200, { method: 'HEAD' }],
    ['/api/handles/21.T11998/page', 200, { method: 'POST' }],
    ['/api/handles?handle=21.T11998/page&handle=21.T11998/nothing', 200],
    ['/api/resolve', 200, { method: 'POST', body: '{"handles":["21.T11998/page"]}' }],
    ['/api/sessions', 201, { method: 'POST' }],
    ['/api/sessions/this', 200],
    ['/api/site', 200],
    ['/api/prefixes', 401],
    ['/api/verifications/300%3A21.T11998%2FUSER01', 400],
    ['/api/verifications/300%3A21.T11998%2FUSER01', 400, { method: 'POST' }],
    ['/api/site', 200, { method: 'POST' }],
  ])('holds for the public call %s with status %d', async (target, status, question) => {
    const { url } = await before();
    expect(await checked(url, target, question)).toBe(status);
  });

  const JSON_BODY = { 'Content-Type': 'application/json' };

  test.each<[target: string, status: number, question?: Question & { body?: string }]>([
    ['/', 200],
    ['/healthz', 200],
    ['/readyz', 200],
    ['/metrics', 200],
    ['/openapi', 200],
    ['/openapi.json', 200],
    ['/openapi.json', 200, { method: 'HEAD' }],
    ['/stats', 200],
    ['/cache?handle=21.T11998/page', 200],
    ['/cache', 400],
    ['/purge', 200, { method: 'POST', headers: JSON_BODY, body: '{"handle":"21.T11998/page","soft":true}' }],
    ['/purge', 200, { method: 'POST', headers: JSON_BODY, body: '{"all":true}' }],
    ['/purge', 400, { method: 'POST', headers: JSON_BODY, body: '{"all":false}' }],
    ['/log-level', 200, { method: 'PUT', headers: JSON_BODY, body: '{"level":"silent"}' }],
  ])('holds for the admin call %s with status %d', async (path, status, question) => {
    // Event-loop lag would make `/healthz` fail, so its limit is ten minutes.
    const { app, url } = await before(fixed({ admin: { maxEventLoopDelayMs: 600_000 } }));
    await ask(url, '/api/handles/21.T11998/page');
    const server = createServer(app.admin).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const place = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await checked(place, path, question, ADMIN_DOCUMENT)).toBe(status);
  });
});
