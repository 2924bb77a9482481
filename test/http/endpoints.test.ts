import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];

describe('HTTP API', () => {
  describe.each<[path: string, methods: string[]]>([
    ['/api/handles', METHODS],
    ['/api/handles/', METHODS],
    ['/api/sessions', ['POST']],
    ['/api/sessions/', ['POST']],
    ['/api/sessions/this', METHODS],
    ['/api/sessions/other', ['POST']],
    ['/api/site', ['GET', 'HEAD', 'POST']],
    ['/api/site/', ['GET', 'HEAD', 'POST']],
    ['/api/prefixes', ['GET', 'HEAD', 'POST', 'DELETE']],
    ['/api/prefixes/21.T1', ['POST', 'DELETE']],
    ['/api/verifications', ['GET', 'HEAD', 'POST']],
    ['/api/verifications/300:21.T1/USER', ['GET', 'HEAD', 'POST']],
  ])('%s', (path, allowed) => {
    test(`forwards ${allowed.join(', ')} and rejects other methods with 405`, async () => {
      const sent = mockWrites(jsonAnswer(200, { responseCode: 1 }), { methods: METHODS, path: /^\/api/ });
      const proxy = await startProxy();
      const headers = { Authorization: 'Handle sessionId="1x"' };
      const statuses = new Map<string, number>();
      for (const method of METHODS) {
        const target =
          path.startsWith('/api/handles') && ['GET', 'HEAD'].includes(method) ? `${path}?prefix=21.T1` : path;
        const answer = await proxy.ask(target, { method, headers });
        statuses.set(method, answer.status);
        if (answer.status !== 405) continue;
        expect(answer.headers.allow).toBe([...allowed, 'OPTIONS'].join(', '));
        if (method !== 'HEAD') expect(JSON.parse(answer.text)).toMatchObject({ responseCode: 4 });
      }
      expect([...statuses].filter(([, status]) => status !== 405).map(([method]) => method)).toEqual(allowed);
      expect(sent.map(({ method }) => method)).toEqual(allowed);
    });
  });

  test.each([
    '/api',
    '/api/',
    '/api/foo',
    '/api/sitex',
    '/api/resolve/x',
    '/api/handlesx',
    '/api/v3/handles',
    '/api/Site',
  ])('returns 404 with a responseCode for every method on %s', async (path) => {
    const sent = mockWrites(jsonAnswer(200, {}), { methods: METHODS, path: /^/ });
    const proxy = await startProxy();
    for (const method of METHODS) {
      const answer = await proxy.ask(path, { method });
      expect(answer.status).toBe(404);
      if (method !== 'HEAD') {
        expect(JSON.parse(answer.text)).toEqual({
          responseCode: 4,
          message: `Unknown HTTP API endpoint ${method} ${path}`,
        });
      }
    }
    expect(sent).toEqual([]);
  });

  test('sends no session id in a path to the server, which would refuse it with 403', async () => {
    const sent = mockWrites(jsonAnswer(200, {}), { methods: METHODS, path: /^/ });
    const proxy = await startProxy();
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE'])
      expect((await proxy.ask('/api/sessions/node01ocylhowzsa5q1', { method })).status).toBe(405);
    expect(sent).toEqual([]);
  });

  test('returns 200 for OPTIONS on an unknown path, as HDLProxy does', async () => {
    const proxy = await startProxy();
    const { status, headers, text } = await proxy.ask('/api/foo', { method: 'OPTIONS' });
    expect([status, headers.allow, text]).toEqual([200, 'OPTIONS', '']);
  });

  describe('Allow header of a 405 and of OPTIONS', () => {
    test.each([
      ['TRACE', '/api/handles/21.T1/a', 'GET, HEAD, POST, PUT, DELETE, OPTIONS'],
      ['TRACE', '/api/site', 'GET, HEAD, POST, OPTIONS'],
      ['DELETE', '/api/site', 'GET, HEAD, POST, OPTIONS'],
      ['PUT', '/api/prefixes', 'GET, HEAD, POST, DELETE, OPTIONS'],
      ['GET', '/api/resolve', 'POST, OPTIONS'],
      ['PUT', '/21.T1/a', 'GET, HEAD, POST, OPTIONS'],
      ['TRACE', '/21.T1/a', 'GET, HEAD, POST, OPTIONS'],
      ['DELETE', '/', 'GET, HEAD, POST, OPTIONS'],
      ['PUT', '/openapi.json', 'GET, HEAD, OPTIONS'],
      ['POST', '/openapi', 'GET, HEAD, OPTIONS'],
    ])('lists the allowed methods for %s %s', async (method, path, allow) => {
      const proxy = await startProxy();
      const { status, headers } = await proxy.ask(path, { method });
      expect([status, headers.allow]).toEqual([405, allow]);
      const options = await proxy.ask(path, { method: 'OPTIONS' });
      expect([options.status, options.headers.allow]).toEqual([200, allow]);
    });
  });

  test.each([
    ['GET', '/api/site'],
    ['POST', '/api/sessions'],
    ['GET', '/api/prefixes'],
  ])('relays the HDLProxy 404 for %s %s when the upstream serves handles only', async (method, path) => {
    const body = `{"responseCode":4,"message":"Unknown HTTP API endpoint ${method} ${path}"}`;
    const rawHeaders = ['Content-Type', 'application/json;charset=utf-8'];
    const sent = mockWrites({ status: 404, body, rawHeaders }, { methods: METHODS });
    const { status, text } = await (await startProxy()).ask(path, { method });
    expect([status, text, sent.length]).toEqual([404, body, 1]);
  });
});
