import { describe, expect, test } from 'vitest';
import { gunzipSync } from 'node:zlib';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream, notFound, recordOf, urlValue } from '../support/upstream.js';

useNock();

describe('caching headers', () => {
  const revalidate = 'public, max-age=0, must-revalidate';

  test('mark a miss and a hit with Age and Cache-Status, and require revalidation', async () => {
    mockUpstream(recordOf([urlValue('https://example.org/', 50)]));
    const proxy = await startProxy();
    const miss = await proxy.ask(PATH);
    expect(miss.headers).toMatchObject({
      age: '0',
      'cache-control': revalidate,
      'cache-status': 'handle-resolver-proxy; fwd=miss; ttl=50; stored',
      vary: 'Accept-Encoding, Authorization, Origin',
    });
    proxy.pass(20_000);
    expect((await proxy.ask(PATH)).headers).toMatchObject({
      age: '20',
      'cache-control': revalidate,
      'cache-status': 'handle-resolver-proxy; hit; ttl=30',
    });
  });

  test('let shared caches reuse a record for http.sharedMaxAge, but at most for its remaining TTL', async () => {
    mockUpstream(recordOf([urlValue('https://example.org/', 50)]));
    const proxy = await startProxy({
      HTTP_SHARED_MAX_AGE: '40s',
      ...fixed({ cache: { refreshAhead: { minHits: 0 } } }),
    });
    const control = async (path = PATH) => (await proxy.ask(path)).headers['cache-control'];
    for (let times = 0; times < 3; times++) expect(await control()).toBe(`${revalidate}, s-maxage=40`);
    proxy.pass(30_000);
    for (let times = 0; times < 2; times++) expect(await control()).toBe(`${revalidate}, s-maxage=20`);
    expect(await control(`${PATH}?auth=true`)).toBe('no-cache');
  });

  test('reflect an absolute TTL, after which the record is loaded again', async () => {
    const upstream = mockUpstream(recordOf([urlValue('https://example.org/', '2026-11-21T10:00:10Z')]));
    const proxy = await startProxy();
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('ttl=10;');
    proxy.pass(9_999);
    await proxy.ask(PATH);
    expect(upstream.asked).toBe(1);
    proxy.pass(1);
    await proxy.ask(PATH);
    expect(upstream.asked).toBe(2);
  });

  test('give a 404 the negative-cache TTL and require revalidation', async () => {
    mockUpstream(notFound());
    const proxy = await startProxy();
    const { headers } = await proxy.ask(PATH);
    expect([headers['cache-control'], headers['cache-status']]).toEqual([
      revalidate,
      'handle-resolver-proxy; fwd=miss; ttl=30; stored',
    ]);
  });

  test('allow a 304 response without a body for a matching If-None-Match', async () => {
    mockUpstream();
    const proxy = await startProxy();
    const { headers } = await proxy.ask(PATH);
    // Apache httpd adds a suffix when it compresses.
    const byApache = headers.etag!.replace(/"$/, '-gzip"');
    for (const tag of [headers.etag!, `W/${headers.etag!}`, `"other", ${headers.etag!}`, '*', byApache]) {
      const answer = await proxy.ask(PATH, { headers: { 'If-None-Match': tag } });
      expect([answer.status, answer.text]).toEqual([304, '']);
      expect(answer.headers.etag).toBe(headers.etag);
    }
    expect((await proxy.ask(PATH, { headers: { 'If-None-Match': '"other"' } })).status).toBe(200);
  });

  test('give each representation a separate ETag', async () => {
    mockUpstream();
    const proxy = await startProxy(fixed({ http: { gzipMinBytes: 1 } }));
    const targets = [
      PATH,
      `${PATH}?pretty`,
      `${PATH}?index=1`,
      `${PATH}?callback=x`,
      '/api/handles/21.T11998/ABC',
    ];
    const tags = await Promise.all(targets.map(async (target) => (await proxy.ask(target)).headers.etag));
    const zipped = await proxy.ask(PATH, { headers: { 'Accept-Encoding': 'gzip' } });
    expect(new Set([...tags, zipped.headers.etag]).size).toBe(targets.length + 1);
  });

  test('include Content-Encoding: gzip for bodies of at least 1 KiB if the client accepts gzip', async () => {
    mockUpstream(recordOf([urlValue(`https://example.org/${'x'.repeat(2000)}`)]));
    const proxy = await startProxy();
    const plain = await proxy.ask(PATH);
    const zipped = await proxy.ask(PATH, { headers: { 'Accept-Encoding': 'br;q=1, gzip;q=0.5' } });
    expect(zipped.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(zipped.body).toString()).toBe(plain.text);
    expect(plain.headers['content-encoding']).toBeUndefined();
    for (const refused of ['identity', 'gzip;q=0', 'br']) {
      const answer = await proxy.ask(PATH, { headers: { 'Accept-Encoding': refused } });
      expect(answer.text).toBe(plain.text);
    }
    const short = await proxy.ask(`${PATH}?type=NOSUCH`, { headers: { 'Accept-Encoding': 'gzip' } });
    expect(short.headers['content-encoding']).toBeUndefined();
  });
});
