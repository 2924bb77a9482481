// Browsers receive pages and programs receive JSON, for records and errors.
import { describe, expect, test } from 'vitest';
import type { Question } from '../support/ask.js';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';

useNock();

const records = {
  abc: [value(1, 'URL', 'https://example.org/abc'), value(2, 'DESC', 'text')],
  text: [value(1, 'DESC', 'no address')],
  bare: [value(1, 'URL', 'https://example.org')],
  loop: [value(1, 'HS_ALIAS', '21.T11998/loop')],
  alias: [value(1, 'HS_ALIAS', '21.T11998/abc')],
};
const JSON_TYPES = [
  'application/json',
  'application/json;q=0.9, text/html;q=0.1',
  'application/problem+json',
  'application/json, text/plain, */*',
];
const PAGE_TYPES = [
  undefined,
  '*/*',
  'text/html',
  'text/html,application/xhtml+xml,*/*;q=0.8',
  'application/pdf',
  '',
  'x',
];
const accepting = (accept: string | undefined): Record<string, string> =>
  accept === undefined ? {} : { Accept: accept };

describe('redirect endpoint (Accept)', () => {
  test('returns JSON for ?noredirect when Accept prefers it', async () => {
    const leads = await startLeads(records);
    const { text: expected } = await leads.ask('/api/handles/21.T11998/abc');
    for (const accept of JSON_TYPES) {
      const { status, headers, text } = await leads.get('abc?noredirect', accepting(accept));
      expect([status, headers['content-type'], text]).toEqual([
        200,
        'application/json;charset=utf-8',
        expected,
      ]);
    }
    for (const accept of PAGE_TYPES) {
      const { headers } = await leads.get('abc?noredirect', accepting(accept));
      expect(headers['content-type'], accept).toBe('text/html;charset=utf-8');
    }
    const one = await leads.get('abc?noredirect&index=2', accepting('application/json'));
    expect(JSON.parse(one.text)).toMatchObject({ values: [{ index: 2 }] });
  });

  test('reads the whole entries in the first 1,000 characters of Accept', async () => {
    const leads = await startLeads(records);
    const half = 'application/json;q=0.5,';
    for (const [accept, type] of [
      [`${'a/b,'.repeat(245)}application/json`, 'application/json'],
      [`${'a/b,'.repeat(250)}application/json`, 'text/html'],
      // The entry with 0.1 ends beyond, and without its quality it would be preferred.
      [`${half}${'a/b,'.repeat(242)}text/html;q=0.1`, 'application/json'],
      ['application/json' + ';a=b'.repeat(250), 'text/html'],
    ]) {
      const { headers } = await leads.get('abc?noredirect', accepting(accept));
      expect(headers['content-type'], accept).toBe(`${type};charset=utf-8`);
    }
  });

  test('returns the JSON of the final handle for an alias', async () => {
    const leads = await startLeads(records);
    const { text } = await leads.get('alias?noredirect', accepting('application/json'));
    expect(JSON.parse(text)).toMatchObject({
      handle: '21.T11998/abc',
      values: [{ type: 'URL' }, { type: 'DESC' }],
    });
  });

  test('redirects to a URL value regardless of Accept', async () => {
    const leads = await startLeads(records);
    for (const accept of [...JSON_TYPES, ...PAGE_TYPES]) {
      expect(await leads.to('abc', { headers: accepting(accept) })).toEqual([302, 'https://example.org/abc']);
    }
  });

  test('shows a record that has no target, and returns it to programs as JSON', async () => {
    const leads = await startLeads(records);
    expect((await leads.get('text')).headers['content-type']).toBe('text/html;charset=utf-8');
    const { status, text } = await leads.get('text', accepting('application/json'));
    expect([status, JSON.parse(text)]).toMatchObject([200, { responseCode: 1 }]);
  });

  test('shows the same error text on a page as in problem JSON', async () => {
    const leads = await startLeads(records);
    const errors: [path: string, status: number, title: string][] = [
      ['/21.T11998/nobody', 404, 'This handle does not exist'],
      ['/21.T11998/nobody?noredirect', 404, 'This handle does not exist'],
      ['/21.T11998/loop', 404, 'Too many aliases or an alias loop'],
      ['/21.T11998/x%ZZ', 400, 'Invalid percent-encoding in the path'],
      ['/21.T11998/bare?urlappend=.evil.org', 400, 'Invalid query parameter'],
    ];
    for (const [path, status, title] of errors) {
      const page = await leads.ask(path, { headers: accepting('text/html') });
      expect([page.status, page.headers['content-type']], path).toEqual([status, 'text/html;charset=utf-8']);
      expect(page.text).toContain(title);
      const problem = await leads.ask(path, { headers: accepting('application/json') });
      expect([problem.status, problem.headers['content-type']]).toEqual([status, 'application/problem+json']);
      expect(JSON.parse(problem.text)).toMatchObject({ status, title });
      for (const { headers } of [page, problem]) expect(headers.vary).toMatch(/^Accept, /);
    }
  });

  test('returns 404 with different response codes for an unknown handle and an unknown API path', async () => {
    const leads = await startLeads({ alias: [value(1, 'HS_ALIAS', '21.T11998/gone')] });
    const paths: [path: string, responseCode: number][] = [
      ['/21.T11998/nobody', 100],
      ['/10.5072/nobody', 100],
      ['/2014/nobody', 100],
      ['/loc.music/nobody', 100],
      ['/0.NA/21.T1', 100],
      ['/hdl:21.T11998/nobody', 100],
      ['/21.T11998/alias', 100],
      ['/21.T11998', 100],
      // A prefix starts with a digit or contains a dot; these paths start like a different API.
      ['/foo/foo/foo/21.T11998/USER01', 4],
      ['/v2/handles/21.T11998/USER01', 4],
      ['/foo', 4],
    ];
    for (const [path, responseCode] of paths) {
      const { status, text } = await leads.ask(path, { headers: accepting('application/json') });
      expect([status, JSON.parse(text)], path).toMatchObject([404, { status: 404, responseCode }]);
    }
  });

  test('redirects an existing handle whose prefix consists only of letters', async () => {
    const leads = await startLeads({ 'test/x': [value(1, 'URL', 'https://example.org/x')] });
    expect((await leads.ask('/test/x')).headers.location).toBe('https://example.org/x');
  });

  test('includes a Handle server response code in problem JSON', async () => {
    const leads = await startLeads(records);
    const problem = async (path: string, question: Question = {}): Promise<unknown> =>
      JSON.parse((await leads.get(path, accepting('application/json'), question)).text);
    expect(await problem('abc', { method: 'PUT' })).toMatchObject({ status: 405, responseCode: 4 });
    expect(await problem('loop')).toMatchObject({ status: 404, responseCode: 100 });
    for (const [status, responseCode, told] of [
      [400, 301, 404],
      [300, 302, 404],
      [403, 400, 403],
      [503, 3, 503],
    ] as const) {
      leads.upstream.answers({ status, body: { responseCode } });
      expect(await problem(`refused-${responseCode}`)).toMatchObject({ status: told, responseCode });
    }
  });

  test('returns an uncacheable 502 for an unreachable Handle server', async () => {
    const leads = await startLeads(records);
    leads.upstream.answers({ status: 0, body: '', error: 'ECONNREFUSED' });
    const page = await leads.get('abc');
    expect([page.status, page.headers['cache-control']]).toEqual([502, 'no-store']);
    expect(page.text).toContain('The Handle server is unreachable');
    leads.pass(60_000);
    const problem = await leads.get('other', accepting('application/json'));
    expect(JSON.parse(problem.text)).toMatchObject({
      status: 502,
      code: 'UPSTREAM_UNREACHABLE',
      handle: '21.T11998/other',
    });
  });

  test('shows a Handle server error', async () => {
    const leads = await startLeads(records);
    leads.upstream.answers({ status: 400, body: { responseCode: 301, handle: '21.T11998/abc' } });
    const foreign = await leads.get('abc');
    expect([foreign.status, foreign.text.includes('This prefix is not served here')]).toEqual([404, true]);
    leads.upstream.answers({ status: 403, body: { responseCode: 400, message: 'Not <for> you' } });
    const refused = await leads.get('other');
    expect(refused.status).toBe(403);
    expect(refused.text).toContain('Not &#60;for&#62; you');
  });

  test('relays Retry-After from an overloaded server', async () => {
    const leads = await startLeads(records);
    leads.upstream.answers({ status: 503, body: 'busy', headers: { 'Retry-After': '7' } });
    const { status, headers } = await leads.get('abc');
    expect([status, headers['retry-after']]).toEqual([503, '7']);
  });

  test('sends a strict Content-Security-Policy with every page and XML list', async () => {
    const leads = await startLeads(records);
    for (const path of [
      '/',
      '/21.T11998/abc?noredirect',
      '/21.T11998/nobody',
      '/21.T11998/abc?action=showurls',
    ]) {
      const { headers } = await leads.ask(path);
      const policy = headers['content-security-policy'];
      expect(policy, path).toMatch(
        /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+';/,
      );
      expect(policy).toContain("base-uri 'none'; frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|\*/);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['referrer-policy']).toBe('no-referrer');
    }
  });
});
