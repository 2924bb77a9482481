// A record that takes longer to load than its TTL: it has expired on arrival, but may be served stale.
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

const shortLived = recordOf([urlValue('https://example.org/short', 1)]);
const broken = { status: 502, body: '<html>' };

describe('record that loads more slowly than its TTL', () => {
  test('is served stale when a later upstream request fails', async () => {
    let release: (value: unknown) => void = () => undefined;
    const after = new Promise((resolve) => {
      release = resolve;
    });
    const upstream = mockUpstream({ ...shortLived, after });
    const proxy = await startProxy();
    const slow = proxy.ask(PATH);
    await expect.poll(() => upstream.asked).toBe(1);
    proxy.pass(1500);
    release(undefined);
    expect((await slow).status).toBe(200);
    upstream.answers(broken);
    const answer = await proxy.ask(PATH);
    expect([answer.status, answer.headers['cache-status']]).toEqual([
      200,
      'handle-resolver-proxy; hit; ttl=-1; detail=error',
    ]);
    expect(upstream.asked).toBe(2);
  });

  test('is not served stale when its TTL is 0', async () => {
    const upstream = mockUpstream(recordOf([urlValue('https://example.org/short', 0)]));
    const proxy = await startProxy();
    await proxy.ask(PATH);
    upstream.answers(broken);
    expect((await proxy.ask(PATH)).status).toBe(502);
  });
});
