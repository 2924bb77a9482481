import nock from 'nock';
import { describe, expect, test } from 'vitest';
import { fixed } from '../support/fixed.js';
import { gate } from '../support/gate.js';
import { PREFIX, startLeads, value } from '../support/leads.js';
import { configFrom } from '../support/load-config.js';
import { useNock } from '../support/nock.js';
import { UPSTREAM_URL, mockUpstream, notFound } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

const records = {
  abc: [value(1, 'URL', 'https://example.org/abc'), value(2, 'DESC', 'text', 50)],
  long: [value(1, 'URL', 'https://example.org/long')],
  uncached: [value(1, 'URL', 'https://example.org/uncached', 0)],
  until: [value(1, 'URL', 'https://example.org/until', '2026-11-21T10:00:30Z')],
};

describe('redirect and page caching', () => {
  test.each([200_000, 0])(
    'sends the record’s Age and max-age on a redirect, with at most %s prepared responses',
    async (maxEntries) => {
      const leads = await startLeads(records, {
        ...fixed({ http: { responseCache: { maxEntries } }, cache: { refreshAhead: { minHits: 0 } } }),
      });
      const told = async (path = 'abc') => {
        const { age, expires, ...more } = (await leads.get(path)).headers;
        return [age, more['cache-control'], expires, more['cache-status']];
      };
      const expires = 'Sat, 21 Nov 2026 10:00:50 GMT';
      const status = 'handle-resolver-proxy;';
      expect(await told()).toEqual([
        '0',
        'public, max-age=50',
        expires,
        `${status} fwd=miss; ttl=50; stored`,
      ]);
      for (const seconds of [0, 20, 29]) {
        leads.pass(seconds * 1000);
        await told();
      }
      expect(await told()).toEqual(['49', 'public, max-age=1', expires, `${status} hit; ttl=1`]);
      leads.pass(1000);
      expect(await told()).toEqual([
        '0',
        'public, max-age=50',
        'Sat, 21 Nov 2026 10:01:40 GMT',
        `${status} fwd=miss; ttl=50; stored`,
      ]);
      expect(leads.upstream.asked).toBe(2);
    },
  );

  test('bounds max-age and Expires by http.clientMaxAge, even in prepared responses', async () => {
    const leads = await startLeads(records);
    for (const seconds of ['00', '01', '02', '03']) {
      const { headers } = await leads.get('long');
      expect([headers['cache-control'], headers.expires]).toEqual([
        'public, max-age=60',
        `Sat, 21 Nov 2026 10:01:${seconds} GMT`,
      ]);
      leads.pass(1000);
    }
    expect((await leads.get('until')).headers.expires).toBe('Sat, 21 Nov 2026 10:00:30 GMT');
  });

  test('lets shared caches reuse a redirect for http.sharedMaxAge, but at most for its remaining TTL', async () => {
    const leads = await startLeads(records, { HTTP_SHARED_MAX_AGE: '10m', HTTP_CLIENT_MAX_AGE: '7s' });
    const control = async (path: string) => (await leads.get(path)).headers['cache-control'];
    for (let times = 0; times < 3; times++) {
      expect(await control('abc')).toBe('public, max-age=7, s-maxage=50');
      expect(await control('long')).toBe('public, max-age=7, s-maxage=600');
    }
  });

  test('requires revalidation of the record JSON and page', async () => {
    const leads = await startLeads(records);
    const json = await leads.get('abc?noredirect', { Accept: 'application/json' });
    expect(json.headers['cache-control']).toBe('public, max-age=0, must-revalidate');
    expect((await leads.get('abc?noredirect')).headers['cache-control']).toBe('no-cache');
  });

  test('expires a response with TTL 0, or for ?auth, immediately', async () => {
    const leads = await startLeads(records);
    for (const path of ['uncached', 'abc?auth']) {
      const { headers } = await leads.get(path);
      expect(headers.expires).toBe('Sat, 21 Nov 2026 10:00:00 GMT');
      expect(headers['cache-control']).toMatch(/^(no-cache|public, max-age=0)$/);
    }
  });

  test('serves a stale redirect with max-age 0 while the Handle server is down', async () => {
    const leads = await startLeads(records);
    await leads.to('abc');
    await leads.to('abc');
    leads.upstream.answers({ status: 500, body: 'broken' });
    leads.pass(600_000);
    for (let times = 0; times < 3; times++) {
      const { status, headers } = await leads.get('abc');
      expect([status, headers.location]).toEqual([302, 'https://example.org/abc']);
      expect(headers['cache-control']).toBe('public, max-age=0');
      expect(headers.expires).toBe('Sat, 21 Nov 2026 10:10:00 GMT');
      expect(headers['cache-status']).toMatch(/hit; ttl=-550; detail=(error|backoff)$/);
    }
    const { values } = await leads.metric('handle_proxy_stale_responses_total');
    expect(values.reduce((sum, { value: count }) => sum + count, 0)).toBe(3);
    expect((await leads.get('abc?noredirect')).text).toContain('This is the record as it was 10 minutes');
  });

  test('uses one cache entry for all requests for a handle', async () => {
    const leads = await startLeads(records);
    const paths = [
      'abc',
      'ABC',
      'abc?index=1',
      'abc?noredirect',
      'abc?action=api',
      'abc?urlappend=/x',
      '%61bc',
    ];
    for (const path of [...paths, ...paths, ...paths])
      expect((await leads.get(path)).status).toBeLessThan(400);
    expect((await leads.ask('/api/handles/21.T11998/abc')).status).toBe(200);
    expect(leads.upstream.asked).toBe(1);
  });

  test('updates the target of every redirect after an acknowledged write', async () => {
    const leads = await startLeads(records);
    mockWrites({ status: 200, body: '{"responseCode":1,"handle":"21.T11998/abc"}' });
    for (let times = 0; times < 5; times++) await leads.to('abc');
    for (const version of [1, 2, 3]) {
      leads.put({ abc: [value(1, 'URL', `https://example.org/${version}`)] });
      const written = await leads.ask('/api/handles/21.T11998/ABC', { method: 'PUT', body: '{"values":[]}' });
      expect(written.status).toBe(200);
      for (let times = 0; times < 3; times++) {
        expect(await leads.to('abc')).toEqual([302, `https://example.org/${version}`]);
      }
    }
    expect(leads.upstream.asked).toBe(4);
  });

  test('revalidates a page with 304', async () => {
    const leads = await startLeads(records);
    await leads.to('abc');
    for (const path of ['/21.T11998/abc?noredirect', '/21.T11998/abc?action=showurls', '/', '/robots.txt']) {
      const { headers } = await leads.ask(path);
      const {
        status,
        text,
        headers: told,
      } = await leads.ask(path, { headers: { 'If-None-Match': headers.etag! } });
      expect([status, text, told.etag, told.vary], path).toEqual([304, '', headers.etag, headers.vary]);
    }
    const { headers } = await leads.get('abc?noredirect');
    expect(headers['cache-control']).toBe('no-cache');
    const old = { 'If-None-Match': headers.etag! };
    leads.put({ abc: [value(1, 'DESC', 'changed')] });
    await leads.get('abc?auth');
    expect((await leads.get('abc?noredirect', old)).status).toBe(200);
  });

  test('ignores a login: the response is the same, from the cache', async () => {
    const leads = await startLeads(records);
    const login = { Authorization: 'Basic MzAwOnVzZXI6cGFzc3dvcmQ=' };
    for (const path of ['abc', 'abc?noredirect', 'abc?action=api']) {
      await leads.get(path);
      const [own, anyone] = [await leads.get(path, login), await leads.get(path)];
      // A second may pass between both.
      own.headers.date = anyone.headers.date;
      expect([own.status, own.headers, own.text], path).toEqual([anyone.status, anyone.headers, anyone.text]);
    }
    expect(leads.upstream.asked).toBe(1);
  });

  test('varies a page by Accept', async () => {
    const leads = await startLeads(records);
    const { headers } = await leads.get('abc?noredirect');
    expect(headers.vary).toBe('Accept, Accept-Encoding, Authorization, Origin');
    const question = { 'If-None-Match': headers.etag!, Accept: 'application/json' };
    expect((await leads.get('abc?noredirect', question)).status).toBe(200);
  });

  test('gives a not-found page the negative-cache TTL', async () => {
    const leads = await startLeads(records);
    const { status, headers } = await leads.get('nobody');
    expect([status, headers['cache-control'], headers.etag]).toEqual([404, 'public, max-age=30', undefined]);
    leads.put({ nobody: [value(1, 'URL', 'https://example.org/born')] });
    leads.pass(29_999);
    expect((await leads.get('nobody')).headers['cache-control']).toBe('public, max-age=0');
    leads.pass(1);
    expect(await leads.to('nobody')).toEqual([302, 'https://example.org/born']);
  });

  test('caches each computed handle of a template separately', async () => {
    const leads = await startLeads({});
    leads.upstream.answers((target) => {
      const handle = decodeURIComponent(target.slice('/api/handles/'.length));
      const [, rest] = handle.split('@');
      const values = [value(1, 'URL', `https://example.org/${rest ?? 'base'}`)];
      return { status: 200, body: { responseCode: 1, handle, values } };
    });
    for (const rest of ['page=1', 'page=2', 'page=1', 'PAGE=1']) {
      expect((await leads.to(`base@${rest}`))[1]).toMatch(/^https:\/\/example\.org\/page=[12]$/);
    }
    expect(await leads.to('base')).toEqual([302, 'https://example.org/base']);
    expect(leads.upstream.asked).toBe(3);
  });

  test('evicts no record during a flood of unknown handles', async () => {
    const leads = await startLeads(records, {
      ...fixed({ cache: { notFound: { maxEntries: 50 } } }),
      CACHE_FOUND_MAX_ENTRIES: '50',
    });
    await leads.to('abc');
    await leads.to('long');
    for (let number = 0; number < 100; number++) expect((await leads.to(`base@${number}`))[0]).toBe(404);
    await leads.to('abc');
    await leads.to('long');
    expect(leads.upstream.asked).toBe(102);
  });

  test('discards the prepared response of a redirect in flight during a reload', async () => {
    const leads = await startLeads(records);
    const { opened, open } = gate();
    const reads: string[] = [];
    await leads.ask(`/api/handles/${PREFIX}/abc`);
    nock.cleanAll();
    mockUpstream((target) => {
      reads.push(target);
      return { ...notFound(decodeURIComponent(target.slice('/api/handles/'.length))), after: opened };
    });
    const inFlight = leads.to('abc');
    await expect.poll(() => reads).not.toEqual([]);
    const env = { UPSTREAM_URL, LOG_LEVEL: 'silent', REDIRECT_ALLOWED_HOSTS: 'elsewhere.example' };
    leads.app.reload(configFrom({ env }));
    open();
    expect(await inFlight).toEqual([302, 'https://example.org/abc']);
    expect(await leads.to('abc')).toEqual([200, undefined]);
  });
});
