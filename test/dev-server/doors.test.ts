// Demo server listeners: TLS, HTTP treated as secure, and HTTP as the real server treats it.
import { request } from 'node:https';
import { describe, expect, it } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { basic, startDemoServer } from '../support/demo.js';

const authorization = basic('300:21.T11998/USER01', 'password');
const PRIVATE = '/api/handles/21.T11998/private?type=NOTE';

describe('demo server listeners', () => {
  it('accept logins over TLS', async () => {
    const { key, cert } = await createCertificate();
    const { url } = await startDemoServer({ tls: { key, cert } });
    const status = await new Promise((resolve, reject) => {
      request(`${url}${PRIVATE}&publicOnly=false`, { ca: cert, headers: { authorization } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect(url).toMatch(/^https:/);
    expect(status).toBe(200);
  });

  it('accept logins over HTTP unless a listener ignores them like the real server', async () => {
    const lenient = await startDemoServer();
    const strict = await lenient.listenInsecurely(0);
    const codes = [lenient, strict].map(async ({ url }) => {
      const response = await fetch(`${url}${PRIVATE}`, { headers: { authorization } });
      return ((await response.json()) as { responseCode: number }).responseCode;
    });
    expect(await Promise.all(codes)).toEqual([1, 200]);
  });

  it('share one set of records', async () => {
    const server = await startDemoServer();
    const { url } = await server.listenInsecurely(0);
    server.put('21.T11998/both', [{ index: 1, type: 'URL', data: 'https://example.org/' }]);
    expect((await fetch(`${url}/api/handles/21.T11998/both`)).status).toBe(200);
    expect(server.askedFor('21.T11998/both')).toBe(1);
  });

  it('reset open connections when the server closes', async () => {
    const server = await startDemoServer();
    server.fail('hang');
    const waiting = fetch(`${server.url}/api/site`);
    waiting.catch(() => undefined);
    while (server.asked === 0) await new Promise(setImmediate);
    await server.close();
    await expect(waiting).rejects.toThrow('fetch failed');
  });

  it.each([
    ['GET', '/api/handles/21.T11998/DEMO?x=%', 400],
    ['PATCH', '/api/sessions', 405],
    ['PATCH', '/api/sessions/this', 405],
    ['GET', '/api/sessions/other', 403],
    ['PATCH', '/api/handles/21.T11998/DEMO', 501],
  ])('answers %s %s as the real server does', async (method, path, status) => {
    const { url } = await startDemoServer();
    expect((await fetch(`${url}${path}`, { method })).status).toBe(status);
  });
});
