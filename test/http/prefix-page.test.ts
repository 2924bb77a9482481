// The public page of a prefix: its figures, its formats, and what it never counts or shows.
import { describe, expect, it } from 'vitest';
import { answerByHandle, handleOfTarget } from '../support/batch.js';
import { fixed } from '../support/fixed.js';
import { problemsFrom } from '../support/load-config.js';
import { complaintsAbout } from '../support/openapi.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { READS } from '../support/reads-by-interface.js';
import '../support/real-sockets.js';
import {
  type Answer,
  UPSTREAM_URL,
  mockUpstream,
  notFound,
  recordOf,
  urlValue,
} from '../support/upstream.js';

useNock();

const ON = { PREFIX_PAGES_PREFIXES: '21.T1,21.t2', ...fixed({ prefixPages: { publishEveryMs: 20 } }) };
const PAGE = '/prefixes/21.T1';
const BROKEN: Answer = { status: 500, body: { responseCode: 2 } };
const DAY_MS = 86_400_000;

/** Answers with an error for a handle that contains `broken`. */
const answer = (target: string): Answer =>
  handleOfTarget(target).includes('broken') ? BROKEN : answerByHandle(target);

async function figuresOf({ ask }: Proxy, prefix = '21.T1'): Promise<Record<string, unknown>> {
  return JSON.parse((await ask(`/prefixes/${prefix}.json`)).text) as Record<string, unknown>;
}

const expectFigures = (proxy: Proxy, figures: object): Promise<void> =>
  expect.poll(() => figuresOf(proxy)).toMatchObject(figures);

async function askAll({ ask }: Proxy, targets: readonly string[]): Promise<void> {
  for (const target of targets) await ask(target);
}

describe('the figures of a prefix', () => {
  it.each(Object.entries(READS))('count reads by %s: found, unknown and failed', async (by, send) => {
    mockUpstream(answer);
    const native = { NATIVE_TCP_PORT: '0', NATIVE_UDP_PORT: '0' };
    const proxy = await startProxy({ ...ON, ...native, V2_ANONYMOUS_READ: 'true' });
    for (const name of ['a', 'a', 'a', 'a', 'none', 'broken']) await send(proxy, `21.t1/${by}-${name}`);
    await expectFigures(proxy, {
      ...{ resolutions: 5, found: 4, failed: 1, availability: 0.8333 },
    });
  });

  it('are empty at first, and count only this instance without Redis', async () => {
    const proxy = await startProxy(ON);
    expect(await figuresOf(proxy)).toEqual({
      ...{ prefix: '21.T1', month: '2026-11', instances: 'this', countedSince: '2026-11-21T10:00:00.000Z' },
      ...{ resolutions: 0, found: 0, failed: 0, availability: null, compared: 0, fresh: null },
    });
  });

  it('count a stale response as an answer, and 304, HEAD and the prefix itself', async () => {
    const upstream = mockUpstream(answer);
    const proxy = await startProxy(ON);
    const path = '/api/handles/21.T1/a';
    const { headers } = await proxy.ask(path);
    await proxy.ask(path, { method: 'HEAD' });
    await proxy.ask(path, { headers: { 'If-None-Match': String(headers.etag) } });
    await proxy.ask('/api/handles/21.T1');
    upstream.answers(BROKEN);
    proxy.pass(3_600_001);
    expect((await proxy.ask(path)).headers['cache-status']).toContain('detail=error');
    await expectFigures(proxy, { resolutions: 5, found: 5, failed: 0, availability: 1 });
  });

  it('count no login, write, refusal, bad request, list, other prefix or page', async () => {
    mockUpstream(answer);
    const rules = JSON.stringify([{ name: 'rude', match: { userAgent: 'Rude*' }, answer: 403 }]);
    const proxy = await startProxy({ ...ON, TRAFFIC_RULES: rules });
    const login = { Authorization: 'Basic dTpw' };
    for (const target of ['/api/handles/21.T1/a', '/api/handles/21.T1/broken'])
      await proxy.ask(target, { headers: login });
    for (const method of ['PUT', 'DELETE', 'POST'])
      await proxy.ask('/api/handles/21.T1/broken', { method, body: '{"values":[]}', headers: login });
    await proxy.ask('/api/handles/21.T1/b', { headers: { 'User-Agent': 'RudeBot' } });
    await askAll(proxy, [
      '/api/handles?prefix=21.T1',
      '/api/handles/21.T1/%zz',
      '/21.T11/a',
      '/21.T2/a',
      PAGE,
    ]);
    await proxy.ask('/api/handles/21.T1/last');
    await expectFigures(proxy, { resolutions: 1, found: 1, failed: 0 });
    expect(await figuresOf(proxy, '21.T2')).toMatchObject({ resolutions: 1 });
  });

  it('contain the share of fresh responses if the audit is on', async () => {
    const record = (url: string): Answer => recordOf([urlValue(url)], '21.T1/a');
    const upstream = mockUpstream(record('https://example.org/old'));
    const proxy = await startProxy({ ...ON, AUDIT_HITS: '1' });
    await askAll(proxy, Array<string>(4).fill('/api/handles/21.T1/a'));
    await expectFigures(proxy, { compared: 3, fresh: 1 });
    upstream.answers(record('https://example.org/new'));
    await proxy.ask('/api/handles/21.T1/a');
    await expectFigures(proxy, { compared: 4, fresh: 0.75 });
    expect((await proxy.ask(PAGE)).text).toContain('75.00 % of 4 compared responses');
  });
});

describe('the month', () => {
  it('starts at zero, and is that of the wall clock', async () => {
    mockUpstream(answer);
    const proxy = await startProxy(ON);
    await proxy.ask('/21.T1/a');
    await expectFigures(proxy, { resolutions: 1 });
    proxy.pass(10 * DAY_MS);
    await expectFigures(proxy, { month: '2026-12', resolutions: 0 });
    await proxy.ask('/21.T1/a');
    await expectFigures(proxy, { month: '2026-12', resolutions: 1 });
    proxy.pass(-DAY_MS);
    await expectFigures(proxy, { month: '2026-11', resolutions: 0 });
  });
});

describe('the page', () => {
  it('shows the figures as HTML, escaped, under the headers of every page', async () => {
    mockUpstream(answer);
    const proxy = await startProxy({ ...ON, PREFIX_PAGES_PREFIXES: '21.T1<b>' });
    await askAll(proxy, ['/api/handles/21.T1<b>/a', '/api/handles/21.T1<b>/none']);
    const page = '/prefixes/21.T1%3Cb%3E';
    await expect.poll(async () => (await proxy.ask(page)).text).toContain('2, 1 of them found; 0 failed');
    const { status, headers, text } = await proxy.ask(page);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/html;charset=utf-8',
      'cache-control': 'public, max-age=60',
      'content-security-policy': expect.stringContaining("default-src 'none'") as string,
      'x-content-type-options': 'nosniff',
      vary: expect.stringContaining('Accept') as string,
    });
    for (const part of [
      '<bdi dir="ltr">21.T1&#60;B&#62;</bdi>',
      'Resolutions in 2026-11',
      '100.00 % of requests answered',
      'not measured',
      'Counted since',
      'one instance',
      '21.T1%3CB%3E.json',
    ])
      expect(text).toContain(part);
    expect(text).not.toContain('<b>');
  });

  it('names no handle and no client', async () => {
    mockUpstream(answer);
    const proxy = await startProxy(ON);
    const headers = {
      'User-Agent': 'secret-agent',
      Referer: 'https://secret.example/',
      'X-Forwarded-For': '192.0.2.9',
    };
    for (const handle of ['21.T1/secret', '21.T9/secret', '21.T1/secret-none', '21.T1/secret-broken'])
      await proxy.ask(`/api/handles/${handle}`, { headers });
    await expectFigures(proxy, { resolutions: 2, failed: 1 });
    for (const page of [PAGE, `${PAGE}.json`, `${PAGE}?pretty`, '/prefixes/21.T2'])
      expect((await proxy.ask(page)).text).not.toMatch(/secret|192\.0\.2|127\.0\.0|21\.T9/i);
  });

  it('is JSON for programs, by Accept or by its name, in any letter case of the prefix', async () => {
    const proxy = await startProxy(ON);
    const json = await proxy.ask('/prefixes/21.t1', {
      headers: { Accept: 'application/json', Origin: 'https://example.org' },
    });
    expect(json.headers['content-type']).toContain('application/json');
    for (const name of ['21.T1.json', '21.t1.json', '21%2Et1.json'])
      expect((await proxy.ask(`/prefixes/${name}`)).text).toBe(json.text);
    expect(json.headers['access-control-allow-origin']).toBeDefined();
  });

  it('is as the OpenAPI document describes it, also without figures and for an unknown prefix', async () => {
    mockUpstream(answer);
    const proxy = await startProxy(ON);
    await askAll(proxy, ['/21.T2/a', '/21.T2/none', '/21.T2/broken']);
    for (const name of ['21.T1', '21.T2', '21.T3', '%zz'])
      for (const Accept of ['application/json', 'text/html']) {
        const target = `/prefixes/${name}`;
        const { status, headers, text } = await proxy.ask(target, { headers: { Accept } });
        const answered = { method: 'GET', target, status, contentType: headers['content-type'], body: text };
        expect(complaintsAbout(answered)).toEqual([]);
      }
  });

  it('has an ETag and answers HEAD', async () => {
    const proxy = await startProxy(ON);
    const { headers } = await proxy.ask(PAGE);
    const again = await proxy.ask(PAGE, { headers: { 'If-None-Match': String(headers.etag) } });
    expect([again.status, again.text, again.headers['cache-control']]).toEqual([
      304,
      '',
      'public, max-age=60',
    ]);
    const head = await proxy.ask(PAGE, { method: 'HEAD' });
    expect([head.status, head.text, head.headers.etag]).toEqual([200, '', headers.etag]);
  });

  it('exists for listed prefixes only, without a request to the Handle server', async () => {
    const upstream = mockUpstream(answer);
    const proxy = await startProxy(ON);
    for (const name of ['21.T3', '21.T1/a', '21.T1.json.json', '21.T1/', '__proto__', 'since', '21.T1%00']) {
      const { status, headers, text } = await proxy.ask(`/prefixes/${name}`, {
        headers: { Accept: 'application/json' },
      });
      expect([name, status, headers['content-type']]).toEqual([name, 404, 'application/problem+json']);
      expect(JSON.parse(text)).toMatchObject({ code: 'PREFIX_PAGE_UNKNOWN', responseCode: 2 });
    }
    expect((await proxy.ask('/prefixes/%zz')).status).toBe(400);
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const { status, headers } = await proxy.ask(PAGE, { method });
      expect([status, headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
    }
    expect(upstream.asked).toBe(0);
  });

  it('exists without redirects and without pages for errors', async () => {
    const proxy = await startProxy({ ...ON, REDIRECT_ENABLED: 'false' });
    const { headers, text } = await proxy.ask(PAGE);
    expect(headers['content-type']).toContain('text/html');
    expect(text).not.toContain('href="/"');
    expect(JSON.parse((await proxy.ask('/prefixes/21.T3')).text)).toMatchObject({
      code: 'PREFIX_PAGE_UNKNOWN',
    });
  });

  it('is off by default: the path is that of a handle', async () => {
    const upstream = mockUpstream(notFound('prefixes/21.T1'));
    const proxy = await startProxy();
    expect((await proxy.ask(PAGE)).status).toBe(404);
    expect(upstream.targets).toEqual(['/api/handles/prefixes/21.T1']);
  });
});

describe('a configuration', () => {
  const problems = (prefixes: string): string =>
    problemsFrom({ env: { UPSTREAM_URL, PREFIX_PAGES_PREFIXES: prefixes } }).join('\n');

  it.each(['21.T1.*', '*', '21.T1/', '21.T1/a', '21.T1,,21.T2', '21..T1', '21 T1', '.'])(
    'with the prefix %s is rejected',
    (prefixes) => {
      expect(problems(prefixes)).toContain(
        'give at most 100 prefixes such as 21.T11998, separated by commas',
      );
    },
  );

  it('lists at most a hundred prefixes', () => {
    const some = (count: number): string => Array.from({ length: count }, (_, at) => `21.T${at}`).join(',');
    expect(problems(some(100))).toBe('');
    expect(problems(some(101))).toContain('give at most 100 prefixes');
  });

  it('may be a list in YAML, whose numbers need quotes', () => {
    const given = (prefixes: string): string[] =>
      problemsFrom({ env: { UPSTREAM_URL }, yaml: `prefixPages: { prefixes: ${prefixes} }` });
    expect(given("['20.500', 21.T1]")).toEqual([]);
    expect(given('[20.500]').join('\n')).toContain('put it in quotes');
  });
});
