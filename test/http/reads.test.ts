// Express routes handle all requests but those with a prepared response.
import { Router } from 'express';
import nock from 'nock';
import { describe, expect, test, vi } from 'vitest';
import { readTarget } from '../../src/http/target.js';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, UPSTREAM_URL, mockUpstream, notFound, recordOf } from '../support/upstream.js';

vi.mock('../../src/http/target.js', { spy: true });
useNock();

const ORIGIN = 'https://app.example.org';

/** Counts requests that enter the Express router. */
function countEntries(): () => number {
  const handle = vi.spyOn(Router.prototype as unknown as { handle: () => void }, 'handle');
  return () => handle.mock.calls.length;
}

describe('reads', () => {
  test.each([
    [{}],
    [{ Via: '1.1 Caddy' }],
    [{ Via: '1.1 handle-resolver-proxy, 1.0 fred (Apache/2.4), HTTP/2 x' }],
    [{ Origin: ORIGIN }],
    [{ Origin: 'null', Via: '2.0 Caddy' }],
    [{ Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c' }],
  ])('are handled by Express until a prepared response exists, with %o', async (headers) => {
    mockUpstream();
    const entries = countEntries();
    const proxy = await startProxy();
    const statuses = [];
    for (const more of [{}, {}, { 'If-None-Match': '*' }, {}]) {
      statuses.push((await proxy.ask(PATH, { headers: { ...headers, ...more } })).status);
    }
    statuses.push((await proxy.ask(PATH, { method: 'HEAD', headers })).status);
    expect(statuses).toEqual([200, 200, 304, 200, 200]);
    expect(entries()).toBe(2);
  });

  const refused = { status: 403, body: { responseCode: 400, message: 'no', handle: HANDLE } };
  const failed = { status: 500, body: { responseCode: 2, message: 'broken', handle: HANDLE } };

  test.each([
    ['a miss', recordOf(), PATH, 200],
    ['an unknown handle', notFound(), PATH, 404],
    ['a Handle server refusal', refused, PATH, 403],
    ['a Handle server failure', failed, PATH, 500],
    ['an authoritative read', recordOf(), `${PATH}?auth`, 200],
    ['an invalid parameter', recordOf(), `${PATH}?index=x`, 400],
    ['an invalid handle', recordOf(), '/api/handles/21.T1/no%zz', 400],
    ['an empty handle', recordOf(), '/api/handles/', 400],
    ['a long target', recordOf(), `${PATH}?${'x'.repeat(2000)}`, 200],
    ['an overlong request line', recordOf(), `${PATH}?${'x'.repeat(10_000)}`, 414],
  ])('are handled by Express for %s and parse the target once', async (_what, answer, target, status) => {
    mockUpstream(answer);
    const entries = countEntries();
    const proxy = await startProxy();
    vi.mocked(readTarget).mockClear();
    const headers = { Origin: ORIGIN, 'Content-Length': '0' };
    expect((await proxy.ask(target, { headers })).status).toBe(status);
    expect(readTarget).toHaveBeenCalledTimes(1);
    expect((await proxy.ask(target, { method: 'HEAD', headers })).status).toBe(status);
    expect(entries()).toBe(2);
  });

  test('are handled by Express for each hit when prepared responses are disabled', async () => {
    const upstream = mockUpstream();
    const entries = countEntries();
    const proxy = await startProxy(fixed({ http: { responseCache: { maxEntries: 0 } } }));
    for (let times = 0; times < 3; times++) expect((await proxy.ask(PATH)).status).toBe(200);
    expect(upstream.asked).toBe(1);
    expect(entries()).toBe(3);
  });

  test.each([
    ['a login', PATH, { Authorization: 'Basic eDp5' }],
    ['private values', `${PATH}?publicOnly=false`, {}],
    ['a list', '/api/handles?prefix=21.T11998', {}],
  ])('are handled by Express each time for %s', async (_what, target, headers) => {
    mockUpstream();
    const entries = countEntries();
    const proxy = await startProxy();
    for (let times = 0; times < 3; times++) expect((await proxy.ask(target, { headers })).status).toBe(200);
    expect(entries()).toBe(3);
  });

  test('have CORS headers, whether prepared or not', async () => {
    mockUpstream();
    const proxy = await startProxy();
    const headers = { Origin: ORIGIN };
    const answers = [];
    for (const more of [{}, {}, { 'If-None-Match': '*' }])
      answers.push(await proxy.ask(PATH, { headers: { ...headers, ...more } }));
    for (const answer of answers) {
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': ORIGIN,
        'access-control-expose-headers': 'Age,Cache-Status,ETag,Content-Length',
        vary: 'Accept-Encoding, Authorization, Origin',
      });
    }
    // The next caller must receive none of these headers.
    expect((await proxy.ask(PATH)).headers).not.toHaveProperty('access-control-allow-origin');
    expect((await proxy.ask(PATH, { headers: { Origin: 'https://b.example' } })).headers).toMatchObject({
      'access-control-allow-origin': 'https://b.example',
    });
  });

  test('return 508 for a hit that loops back to the same proxy', async () => {
    let via = '';
    nock(UPSTREAM_URL)
      .get(PATH)
      .reply(function () {
        via = String(this.req.headers['via']);
        const { status, body } = recordOf(undefined, HANDLE);
        return [status, JSON.stringify(body), { 'Content-Type': 'application/json' }];
      });
    const proxy = await startProxy();
    for (let times = 0; times < 3; times++) await proxy.ask(PATH);
    expect(via).toContain('handle-resolver-proxy-');
    for (const value of [via, `1.0 a, ${via}`, `${via}, 1.1 b`])
      expect((await proxy.ask(PATH, { headers: { Via: value } })).status).toBe(508);
    expect((await proxy.ask(PATH, { headers: { Via: '1.1 another' } })).status).toBe(200);
  });
});
