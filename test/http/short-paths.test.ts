// Plain questions are answered without Express also behind proxies and for scripts of other sites.
import express from 'express';
import nock from 'nock';
import { expect, test, vi } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, UPSTREAM_URL, mockUpstream, recordOf } from '../support/upstream.js';

useNock();

const ORIGIN = 'https://app.example.org';

/** How often Express is entered from now on; to be called before the proxy is made. */
function countEntries(): () => number {
  const handle = vi.spyOn(express.application as unknown as { handle: () => void }, 'handle');
  return () => handle.mock.calls.length;
}

test.each([
  [{}],
  [{ Via: '1.1 Caddy' }],
  [{ Via: '1.1 handle-resolver-proxy, 1.0 fred (Apache/2.4), HTTP/2 x' }],
  [{ Origin: ORIGIN }],
  [{ Origin: 'null', Via: '2.0 Caddy' }],
  [{ Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c' }],
])('a miss and hits with %o', async (headers) => {
  mockUpstream();
  const entries = countEntries();
  const proxy = await startProxy();
  const statuses = [];
  for (const more of [{}, {}, { 'If-None-Match': '*' }, {}]) {
    statuses.push((await proxy.ask(PATH, { headers: { ...headers, ...more } })).status);
  }
  statuses.push((await proxy.ask(PATH, { method: 'HEAD', headers })).status);
  expect(statuses).toEqual([200, 200, 304, 200, 200]);
  expect(entries()).toBe(0);
});

test('an answer without Express lets scripts read it and its headers', async () => {
  mockUpstream();
  const entries = countEntries();
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
  // The next caller gets nothing that was said to this one.
  expect((await proxy.ask(PATH)).headers).not.toHaveProperty('access-control-allow-origin');
  expect((await proxy.ask(PATH, { headers: { Origin: 'https://b.example' } })).headers).toMatchObject({
    'access-control-allow-origin': 'https://b.example',
  });
  expect(entries()).toBe(0);
});

test('a hit that comes back to its own proxy is 508', async () => {
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
