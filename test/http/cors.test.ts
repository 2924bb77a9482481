import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream, notFound } from '../support/upstream.js';

useNock();

const Origin = 'https://app.example.org';

describe('CORS', () => {
  test('exposes responses and headers to scripts and sends Vary: Origin', async () => {
    mockUpstream();
    const proxy = await startProxy();
    const { headers } = await proxy.ask(PATH, { headers: { Origin } });
    expect(headers['access-control-allow-origin']).toBe(Origin);
    expect(headers['access-control-allow-credentials']).toBeUndefined();
    expect(headers['access-control-expose-headers']).toBe('Age,Cache-Status,ETag,Content-Length');
    expect(headers.vary).toContain('Origin');
    expect((await proxy.ask(PATH)).headers['access-control-allow-origin']).toBeUndefined();
    expect((await proxy.ask(PATH)).headers.vary).toContain('Origin');
  });

  test('exposes error responses to scripts', async () => {
    mockUpstream(notFound());
    const proxy = await startProxy();
    for (const target of [PATH, '/api/foo', '/api/handles/%zz']) {
      expect((await proxy.ask(target, { headers: { Origin } })).headers['access-control-allow-origin']).toBe(
        Origin,
      );
    }
  });

  test('answers a preflight as a Handle server does, without an upstream request', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    const headers = {
      Origin,
      'Access-Control-Request-Method': 'PUT',
      'Access-Control-Request-Headers': 'authorization, content-type',
    };
    const answer = await proxy.ask(PATH, { method: 'OPTIONS', headers });
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': Origin,
      'access-control-max-age': '86400',
      'access-control-allow-methods': 'GET,POST,HEAD,PUT,DELETE',
      'access-control-allow-headers': 'X-Requested-With,Authorization,Origin,Accept,Content-Type',
      'content-length': '0',
    });
    expect(upstream.asked).toBe(0);
  });

  test('allows If-Match in a preflight, unlike a Handle server', async () => {
    mockUpstream();
    const proxy = await startProxy();
    const headers = {
      Origin,
      'Access-Control-Request-Method': 'PUT',
      'Access-Control-Request-Headers': 'authorization,content-type,if-match',
    };
    const answer = await proxy.ask(PATH, { method: 'OPTIONS', headers });
    expect(answer.headers['access-control-allow-headers']).toBe(
      'X-Requested-With,Authorization,Origin,Accept,Content-Type,If-Match',
    );
  });

  test.each([
    { 'Access-Control-Request-Method': 'PATCH' },
    { 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'x-evil' },
  ])('omits the CORS headers for a rejected preflight: %o', async (more) => {
    mockUpstream();
    const proxy = await startProxy();
    const answer = await proxy.ask(PATH, { method: 'OPTIONS', headers: { Origin, ...more } });
    expect(answer.status).toBe(200);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  test('lists the allowed methods for an OPTIONS request that has no Origin', async () => {
    mockUpstream();
    const proxy = await startProxy();
    const answer = await proxy.ask(PATH, { method: 'OPTIONS' });
    expect([answer.status, answer.headers.allow]).toEqual([200, 'GET, HEAD, POST, PUT, DELETE, OPTIONS']);
  });
});
