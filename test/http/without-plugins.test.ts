// The core alone, without any plugin, serves each of its interfaces. The check also runs their tests without plugins
// (`CORE` in vitest.config.ts).
import request from 'supertest';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminValue, textValue } from '../../src/dev-server/seed.js';
import { admin } from '../../src/plugins/admin/plugin.js';
import type { Asked, Question } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { type Proxy, openProxy, startProxy } from '../support/proxy.js';
import '../support/real-sockets.js';
import { USER01, urlTo } from '../support/v2.js';

const NAME = '21.T11998/CORE';
const PATH = `/api/handles/${NAME}`;
const LOGIN = { Authorization: USER01 };
const recordAt = (index: number): object => ({
  values: [adminValue(), textValue(index, 'URL', 'https://example.org/core')],
});
const JSON_TYPE = { 'Content-Type': 'application/json' };

const demo = await startDemoServer();

describe('the core without plugins', () => {
  let proxy: Proxy;

  beforeAll(async () => {
    proxy = await openProxy(
      { UPSTREAM_URL: demo.url, DELETION_VALUES: 'true', DELETION_HANDLES: 'true' },
      { plugins: [] },
    );
  });

  afterAll(() => proxy.close());

  const put = (path: string, body: unknown, headers = {}): Promise<Asked> =>
    proxy.ask(path, {
      method: 'PUT',
      headers: { ...LOGIN, ...JSON_TYPE, ...headers },
      body: JSON.stringify(body),
    });

  test.each<[string, string, Question, number]>([
    ['a miss', '/api/handles/21.T11998/DEMO', {}, 200],
    ['a hit', '/api/handles/21.T11998/demo?type=URL&pretty', {}, 200],
    ['an unknown handle', '/api/handles/21.T11998/none', {}, 404],
    ['an authoritative read', '/api/handles/21.T11998/DEMO?auth=true', {}, 200],
    ['a read of public values', '/api/handles/21.T11998/DEMO?publicOnly=true', {}, 200],
    ['a read with a login', '/api/handles/21.T11998/DEMO', { headers: LOGIN }, 200],
    ['a list', '/api/handles?prefix=21.T11998', { headers: LOGIN }, 200],
    ['a session', '/api/sessions/this', {}, 200],
    ['the site record', '/api/site', {}, 200],
    ['an invalid handle', '/api/handles/21.T1/no%zz', {}, 400],
    ['an unknown endpoint', '/api/nothing', {}, 404],
    ['a method that is not allowed', '/api/site', { method: 'DELETE' }, 405],
    ['a preflight', PATH, { method: 'OPTIONS' }, 200],
    ['a redirect', '/21.T11998/DEMO', {}, 302],
    ['a missing redirect', '/21.T11998/none', {}, 404],
    ['a record instead of a redirect', '/21.T11998/DEMO?noredirect', {}, 200],
    ['ePIC v2 without a login', '/api/v2/handles/21.T11998/DEMO', {}, 401],
    ['a list of ePIC v2', '/api/v2/handles/21.T11998', { headers: LOGIN }, 200],
    ['a batch, which is a plugin', '/api/resolve', { method: 'POST' }, 404],
  ])('answers %s', async (_what, path, question, status) => {
    expect((await proxy.ask(path, question)).status).toBe(status);
  });

  test('writes, and serves what was written', async () => {
    expect((await put(PATH, recordAt(1))).status).toBe(201);
    const first = await proxy.ask(PATH);
    expect((await put(PATH, recordAt(2))).status).toBe(200);
    const second = await proxy.ask(PATH);
    expect(second.headers['etag']).not.toBe(first.headers['etag']);
    const stale = { 'If-Match': first.headers['etag'] };
    expect((await put(PATH, recordAt(1), stale)).status).toBe(412);
    expect((await put(`/api/v2/handles/${NAME}`, [urlTo('two')])).status).toBe(204);
    expect((await proxy.ask(`/${NAME}`)).headers.location).toContain('two');
    const answers = [];
    for (const method of ['DELETE', 'GET'])
      answers.push((await proxy.ask(PATH, { method, headers: method === 'GET' ? {} : LOGIN })).status);
    expect(answers).toEqual([200, 404]);
  });

  test('creates and deletes with ePIC v2', async () => {
    const headers = { ...LOGIN, ...JSON_TYPE };
    const body = JSON.stringify([urlTo('minted')]);
    const created = await proxy.ask('/api/v2/handles/21.T11998', { method: 'POST', headers, body });
    expect(created.status).toBe(201);
    const { pathname } = new URL(created.headers.location ?? '');
    expect((await proxy.ask(pathname, { method: 'DELETE', headers })).status).toBe(204);
    expect((await proxy.ask(pathname, { headers })).status).toBe(404);
  });

  test('revalidates with 304', async () => {
    const path = '/api/handles/21.T11998/DEMO';
    const { etag = '' } = (await proxy.ask(path)).headers;
    expect((await proxy.ask(path, { headers: { 'If-None-Match': etag } })).status).toBe(304);
  });

  test('counts, and knows whether it is ready, without the admin listener', async () => {
    expect(proxy.app.readiness.report()).toEqual({ ready: true, notReady: [] });
    expect(await proxy.metrics()).not.toEqual([]);
    expect((await request(proxy.app.admin).get('/healthz')).status).toBe(404);
  });

  test.each(['/healthz', '/readyz', '/metrics'])(
    'answers GET %s with the admin plugin alone',
    async (path) => {
      const { app } = await startProxy({ UPSTREAM_URL: demo.url }, { plugins: [admin] });
      expect((await request(app.admin).get(path)).status).toBe(200);
    },
  );
});
