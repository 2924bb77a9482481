import { describe, expect, test } from 'vitest';
import { recordEtag } from '../support/v2-values.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { USER01, askV2, read } from '../support/v2.js';
import { NAME, reply, scriptUpstream, sends } from '../support/v2-upstream.js';
import { RECORD, SECRET_VALUE } from '../support/v2-record.js';
import { mockUpstream, notFound, recordOf } from '../support/upstream.js';

useNock();

const start = async (env: Record<string, string> = {}) => {
  const proxy = await startProxy(env);
  return { v2: askV2(proxy.url), proxy };
};

describe('authenticated ePIC v2 read', () => {
  test('returns the whole record, sorted and without its secret key', async () => {
    const { sent } = scriptUpstream(reply.record([...RECORD, SECRET_VALUE]));
    const { v2 } = await start();
    const answer = await v2(`/${NAME}`);
    expect(sent).toEqual([sends('GET', `/${NAME}`, USER01)]);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json;charset=utf-8',
      'cache-control': 'no-store',
      etag: recordEtag(RECORD),
      vary: 'Accept-Encoding, Authorization, Origin',
    });
    expect(read(answer)).toEqual([
      {
        idx: 1,
        type: 'URL',
        parsed_data: 'https://example.org/one',
        data: 'aHR0cHM6Ly9leGFtcGxlLm9yZy9vbmU=',
        timestamp: '2026-11-21T09:00:00Z',
        ttl_type: 0,
        ttl: 86400,
        refs: [],
        privs: 'rwr-',
      },
      expect.objectContaining({ idx: 100, data: 'B/MAAAAOMC5OQS8yMS5UMTE5OTgAAADI' }),
    ]);
  });

  test('returns the public values when some values are unreadable', async () => {
    const { sent } = scriptUpstream(reply.forbidden, reply.record(RECORD));
    const { v2 } = await start();
    expect((await v2(`/${NAME}`)).status).toBe(200);
    expect(sent.map(({ target }) => target)).toEqual([
      `/api/handles/${NAME}`,
      `/api/handles/${NAME}?publicOnly=true`,
    ]);
  });

  test('bypasses the cache', async () => {
    const { sent } = scriptUpstream(reply.record(RECORD), reply.record(RECORD), reply.missing);
    const { v2, proxy } = await start();
    await v2(`/${NAME}`);
    await v2(`/${NAME}`);
    expect((await proxy.ask(`/api/handles/${NAME}`)).status).toBe(404);
    expect(sent.map(({ authorization }) => authorization)).toEqual([USER01, USER01, undefined]);
  });

  test('returns 304 for a known ETag', async () => {
    scriptUpstream(reply.record(RECORD), reply.record(RECORD));
    const { v2 } = await start();
    const headers = { 'If-None-Match': `"x", W/${recordEtag(RECORD)}` };
    const answer = await v2(`/${NAME}`, { headers });
    expect([answer.status, answer.text, answer.headers.etag]).toEqual([304, '', recordEtag(RECORD)]);
    expect((await v2(`/${NAME}`, { headers: { 'If-Match': '"x"' } })).status).toBe(412);
  });

  test('sends no body for HEAD', async () => {
    scriptUpstream(reply.record(RECORD), reply.record(RECORD));
    const { v2 } = await start();
    const [get, head] = [await v2(`/${NAME}`), await v2(`/${NAME}`, { method: 'HEAD' })];
    expect([head.status, head.text]).toEqual([200, '']);
    expect(head.headers['content-length']).toBe(get.headers['content-length']);
  });
});

describe('ePIC v2 read with a condition on a date', () => {
  test('returns the record, which has no modification date', async () => {
    scriptUpstream(reply.record(RECORD));
    const { v2 } = await start();
    const headers = { 'If-Modified-Since': 'Sat, 21 Nov 2099 09:00:00 GMT' };
    const answer = await v2(`/${NAME}`, { headers });
    expect(answer.status).toBe(200);
    expect(answer.headers).not.toHaveProperty('last-modified');
  });
});

describe('anonymous ePIC v2 read', () => {
  test('returns 401 with a challenge', async () => {
    const { v2 } = await start();
    const answer = await v2(`/${NAME}`, { as: null });
    expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, 'Basic realm="handle"']);
  });

  test('is served from the shared record cache when v2.anonymousRead is true', async () => {
    const upstream = mockUpstream(recordOf(RECORD, NAME));
    const { v2, proxy } = await start({ V2_ANONYMOUS_READ: 'true' });
    await proxy.ask(`/api/handles/${NAME}`);
    proxy.pass(10_000);
    const answer = await v2(`/${NAME}`, { as: null });
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      age: '10',
      'cache-control': 'public, max-age=0, must-revalidate',
      'cache-status': 'handle-resolver-proxy; hit; ttl=3590',
      etag: recordEtag(RECORD),
    });
    const headers = { 'If-None-Match': recordEtag(RECORD) };
    expect((await v2(`/${NAME}`, { as: null, headers })).status).toBe(304);
    expect(upstream.asked).toBe(1);
  });

  test('returns 404 for a missing handle when v2.anonymousRead is true, while a list and a DELETE require a login', async () => {
    const upstream = mockUpstream(notFound(NAME));
    const { v2 } = await start({ V2_ANONYMOUS_READ: 'true' });
    expect((await v2(`/${NAME}`, { as: null })).status).toBe(404);
    expect((await v2(`/${NAME}/`, { as: null })).status).toBe(404);
    expect((await v2('/21.T11998', { as: null })).status).toBe(401);
    expect((await v2(`/${NAME}`, { as: null, method: 'DELETE' })).status).toBe(401);
    expect(upstream.asked).toBe(1);
  });

  test('names a stale 404 in Cache-Status, as a fresh one', async () => {
    const upstream = mockUpstream(notFound(NAME));
    const { v2, proxy } = await start({ V2_ANONYMOUS_READ: 'true' });
    await v2(`/${NAME}`, { as: null });
    const fresh = await v2(`/${NAME}`, { as: null });
    expect(fresh.headers['cache-status']).toBe('handle-resolver-proxy; hit; ttl=30');
    proxy.pass(31_000);
    upstream.answers({ status: 500, body: '', error: 'ECONNREFUSED' });
    const stale = await v2(`/${NAME}`, { as: null });
    expect([stale.status, stale.headers['cache-status']]).toEqual([
      404,
      'handle-resolver-proxy; hit; ttl=-1; detail=error',
    ]);
  });

  test('is served stale while the Handle server is down when v2.anonymousRead is true', async () => {
    const upstream = mockUpstream(recordOf(RECORD, NAME));
    const { v2, proxy } = await start({ V2_ANONYMOUS_READ: 'true' });
    await v2(`/${NAME}`, { as: null });
    proxy.pass(3_601_000);
    upstream.answers({ status: 500, body: '', error: 'ECONNREFUSED' });
    const answer = await v2(`/${NAME}`, { as: null });
    expect(answer.status).toBe(200);
    expect(answer.headers['cache-status']).toContain('detail=error');
  });
});
