import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, VALUES, mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

const HOUR = 3_600_000;
const broken = { status: 502, body: '<html>' };
const later = recordOf([urlValue('https://example.org/later')]);

describe('expired record', () => {
  test('is served stale, and marked stale, when the upstream fails', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    const { text } = await proxy.ask(PATH);
    upstream.answers(broken);
    proxy.pass(HOUR + 2000);
    const answer = await proxy.ask(PATH);
    expect([answer.status, answer.text]).toEqual([200, text]);
    expect(answer.headers['cache-status']).toBe('handle-resolver-proxy; hit; ttl=-2; detail=error');
    expect(answer.headers['cache-control']).toBe('public, max-age=0, must-revalidate');
    expect(answer.headers.age).toBe('3602');
  });

  test('is not served stale after a later response with TTL 0', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    await proxy.ask(PATH);
    proxy.pass(HOUR);
    upstream.answers(recordOf([urlValue('https://example.org/later', 0)]));
    expect((await proxy.ask(PATH)).text).toContain('/later');
    upstream.answers(broken);
    expect((await proxy.ask(PATH)).status).toBe(502);
  });

  test('is not loaded again within upstream.retryAfter of a failure', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    await proxy.ask(PATH);
    upstream.answers(broken);
    proxy.pass(HOUR);
    await proxy.ask(PATH);
    proxy.pass(4999);
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('detail=backoff');
    expect(upstream.asked).toBe(2);
    upstream.answers(later);
    proxy.pass(1);
    expect((await proxy.ask(PATH)).text).toContain('/later');
    expect(upstream.asked).toBe(3);
  });

  test('is served stale when the upstream is slow, and replaced by the late response', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy({ UPSTREAM_STALE_AFTER: '20ms' });
    await proxy.ask(PATH);
    let release: (value: unknown) => void = () => undefined;
    const after = new Promise((resolve) => {
      release = resolve;
    });
    upstream.answers({ ...later, after });
    proxy.pass(HOUR);
    const answer = await proxy.ask(PATH);
    expect(answer.headers['cache-status']).toContain('detail=timeout');
    expect(answer.text).not.toContain('/later');
    release(undefined);
    await expect.poll(async () => (await proxy.ask(PATH)).text).toContain('/later');
    expect(upstream.asked).toBe(2);
  });

  test('is served stale to later readers too once upstream.staleAfter has passed since the load began', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy({ UPSTREAM_STALE_AFTER: '5m', UPSTREAM_TIMEOUT: '10m' });
    await proxy.ask(PATH);
    let release: (value: unknown) => void = () => undefined;
    const after = new Promise((resolve) => {
      release = resolve;
    });
    upstream.answers({ ...later, after });
    proxy.pass(HOUR);
    const first = proxy.ask(PATH);
    await expect.poll(() => upstream.asked).toBe(2);
    proxy.pass(300_000);
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('detail=timeout');
    release(undefined);
    expect((await first).text).toContain('/later');
    expect(upstream.asked).toBe(2);
  });

  test('is served stale only within cache.staleIfError', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy({ CACHE_STALE_IF_ERROR: '1m', UPSTREAM_RETRY_AFTER: '0s' });
    await proxy.ask(PATH);
    upstream.answers(broken);
    proxy.pass(HOUR + 59_999);
    expect((await proxy.ask(PATH)).status).toBe(200);
    proxy.pass(1);
    const answer = await proxy.ask(PATH);
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.text)).toMatchObject({ responseCode: 2, handle: HANDLE });
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  test('is served stale for the period configured for its prefix, and indefinitely for "forever"', async () => {
    const upstream = mockUpstream((target) => recordOf(VALUES, target.replace('/api/handles/', '')));
    const periods = '{default: 1m, 21.t1: forever, 21.T1.*: 2m, 10.1000: 0s}';
    const proxy = await startProxy({ CACHE_STALE_IF_ERROR: periods, UPSTREAM_RETRY_AFTER: '0s' });
    const statuses = (): Promise<number[]> =>
      Promise.all(
        ['21.T1/a', '21.T1.5/a', '20.5/a', '10.1000/a'].map(
          async (handle) => (await proxy.ask(`/api/handles/${handle}`)).status,
        ),
      );
    expect(await statuses()).toEqual([200, 200, 200, 200]);
    upstream.answers(broken);
    proxy.pass(HOUR + 59_000);
    expect(await statuses()).toEqual([200, 200, 200, 502]);
    proxy.pass(60_000);
    expect(await statuses()).toEqual([200, 200, 502, 502]);
    proxy.pass(50 * 365 * 24 * HOUR);
    expect(await statuses()).toEqual([200, 502, 502, 502]);
    const { headers } = await proxy.ask('/api/handles/21.T1/a');
    expect(headers['cache-status']).toMatch(/; hit; ttl=-\d+; detail=error$/);
  });

  test('is not served after an invalidation, even if cache.staleIfError is "forever"', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy({ CACHE_STALE_IF_ERROR: 'forever' });
    await proxy.ask(PATH);
    await proxy.app.operations.purge({ handles: [HANDLE], isSoft: false });
    upstream.answers(broken);
    expect((await proxy.ask(PATH)).status).toBe(502);
  });

  test('is not served when the upstream returns 404', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    await proxy.ask(PATH);
    upstream.answers({ status: 404, body: { responseCode: 100, handle: HANDLE } });
    proxy.pass(HOUR);
    expect((await proxy.ask(PATH)).status).toBe(404);
    upstream.answers(broken);
    proxy.pass(HOUR);
    expect((await proxy.ask(PATH)).status).toBe(404);
  });
});
