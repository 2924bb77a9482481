import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream, notFound } from '../support/upstream.js';

useNock();

describe('single flight', () => {
  test('serves 200 concurrent callers and all representations with one upstream request', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    const answers = await Promise.all(Array.from({ length: 200 }, () => proxy.ask(PATH)));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);

    const ways = ['?index=1', '?type=URL&type=EMAIL', '?type=URL.', '?pretty', '?callback=x'].map(
      (query) => PATH + query,
    );
    const spellings = ['21.t11998/ABC', '21.T11998%2Fabc', '21.T11998/%61bc'].map(
      (raw) => `/api/handles/${raw}`,
    );
    for (const target of [...ways, ...spellings]) expect((await proxy.ask(target)).status).toBe(200);
    expect(upstream.targets).toEqual([PATH]);
  });

  test('is shared by all case variants of a handle', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    const answers = await Promise.all([proxy.ask(PATH), proxy.ask(`/api/handles/${HANDLE.toUpperCase()}`)]);
    expect(answers.map(({ text }) => (JSON.parse(text) as { handle: string }).handle)).toEqual([
      HANDLE,
      HANDLE.toUpperCase(),
    ]);
    expect(upstream.asked).toBe(1);
  });

  test('is shared by concurrent callers of an uncacheable record', async () => {
    let release: (value: unknown) => void = () => undefined;
    const after = new Promise((resolve) => {
      release = resolve;
    });
    const upstream = mockUpstream({ ...recordWithTtl(0), after });
    const proxy = await startProxy();
    const together = Promise.all([proxy.ask(PATH), proxy.ask(PATH), proxy.ask(PATH)]);
    await expect.poll(() => upstream.asked).toBe(1);
    release(undefined);
    expect((await together).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(upstream.asked).toBe(1);
    await proxy.ask(PATH);
    expect(upstream.asked).toBe(2);
  });
  test('is not joined once its load may have missed a write while Redis is down', async () => {
    let release: (value: unknown) => void = () => undefined;
    const after = new Promise((resolve) => {
      release = resolve;
    });
    const upstream = mockUpstream({ ...recordWithTtl(60), after });
    const proxy = await startProxy({ REDIS_URL: 'redis://127.0.0.1:1' });
    const first = proxy.ask(PATH);
    await expect.poll(() => upstream.asked).toBe(1);
    upstream.answers(notFound());
    proxy.pass(5001);
    expect((await proxy.ask(PATH)).status).toBe(404);
    release(undefined);
    expect((await first).status).toBe(200);
  });
});

describe('case-sensitive upstream', () => {
  test('distinguishes the case of suffixes but not of prefixes', async () => {
    const upstream = mockUpstream((target) => ({
      status: 200,
      body: {
        responseCode: 1,
        handle: decodeURIComponent(target.slice('/api/handles/'.length)),
        values: recordWithTtl(60).body.values,
      },
    }));
    const proxy = await startProxy({ UPSTREAM_CASE_SENSITIVE: 'true' });
    await proxy.ask('/api/handles/21.T1/abc');
    await proxy.ask('/api/handles/21.t1/abc');
    expect(upstream.asked).toBe(1);
    await proxy.ask('/api/handles/21.T1/ABC');
    expect(upstream.asked).toBe(2);
  });
});

function recordWithTtl(ttl: number) {
  const values = [{ index: 1, type: 'URL', data: { format: 'string', value: 'https://example.org/' }, ttl }];
  return { status: 200, body: { responseCode: 1, handle: HANDLE, values } };
}
