import { describe, expect, test } from 'vitest';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

const HOUR = 3_600_000;

describe('refresh ahead', () => {
  test('loads a frequently read record before its TTL expires, without delaying readers', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    for (let times = 0; times < 4; times++) await proxy.ask(PATH);
    upstream.answers(recordOf([urlValue('https://example.org/ahead')]));
    proxy.pass(0.9 * HOUR + 1);
    expect((await proxy.ask(PATH)).headers['cache-status']).toMatch(/; hit; ttl=359$/);
    await expect.poll(async () => (await proxy.ask(PATH)).text).toContain('/ahead');
    expect(upstream.asked).toBe(2);
  });

  test('does not load a rarely read record', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    await proxy.ask(PATH);
    proxy.pass(0.95 * HOUR);
    await proxy.ask(PATH);
    expect(upstream.asked).toBe(1);
  });

  test('is disabled by a minimum of 0 hits', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy(fixed({ cache: { refreshAhead: { minHits: 0 } } }));
    for (let times = 0; times < 10; times++) await proxy.ask(PATH);
    proxy.pass(0.95 * HOUR);
    for (let times = 0; times < 10; times++) await proxy.ask(PATH);
    expect(upstream.asked).toBe(1);
  });

  test('leaves the fresh record in the cache when the early load fails', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    for (let times = 0; times < 4; times++) await proxy.ask(PATH);
    upstream.answers({ status: 500, body: 'broken' });
    proxy.pass(0.95 * HOUR);
    await proxy.ask(PATH);
    await expect.poll(() => upstream.asked).toBe(2);
    expect((await proxy.ask(PATH)).headers['cache-status']).toMatch(/; hit; ttl=\d+$/);
  });

  test('tries again some seconds after a failure, and not before', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    for (let times = 0; times < 4; times++) await proxy.ask(PATH);
    upstream.answers({ status: 200, body: '', error: 'ECONNREFUSED' });
    proxy.pass(0.95 * HOUR);
    await proxy.ask(PATH);
    const failedReads = async (): Promise<number | undefined> =>
      (await proxy.metric('handle_proxy_upstream_requests_total')).values.find(
        ({ labels }) => labels['outcome'] === 'UPSTREAM_UNREACHABLE',
      )?.value;
    await expect.poll(failedReads).toBe(1);
    // No response to any of these is prepared.
    for (let index = 1; index < 5; index++) await proxy.ask(`${PATH}?index=${index}`);
    expect(await failedReads()).toBe(1);
    upstream.answers(recordOf([urlValue('https://example.org/ahead')]));
    proxy.pass(5000);
    await expect.poll(async () => (await proxy.ask(PATH)).text).toContain('/ahead');
    expect(await failedReads()).toBe(1);
  });

  test('does not request a record again with each hit after the server has refused it', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    for (let times = 0; times < 4; times++) await proxy.ask(PATH);
    upstream.answers({ status: 403, body: '{"responseCode":400,"handle":"21.T11998/page"}' });
    proxy.pass(0.95 * HOUR);
    await proxy.ask(PATH);
    await expect.poll(() => upstream.asked).toBe(2);
    // No response to any of these is prepared.
    for (let index = 1; index < 5; index++)
      expect((await proxy.ask(`${PATH}?index=${index}`)).headers['cache-status']).toContain('hit');
    expect(upstream.asked).toBe(2);
    proxy.pass(5000);
    await proxy.ask(`${PATH}?index=1`);
    await expect.poll(() => upstream.asked).toBe(3);
  });
});
