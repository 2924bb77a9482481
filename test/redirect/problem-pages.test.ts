import { describe, expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { startLeads, value } from '../support/leads.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { mockUpstream } from '../support/upstream.js';

useNock();

const records = { abc: [value(1, 'URL', 'https://example.org/abc')] };
const CONTACT = {
  PAGE_FOOTER_LINKS: JSON.stringify([
    { text: 'Imprint', url: 'https://example.org/imprint' },
    { text: 'PID & co', url: 'mailto:pid@example.org' },
  ]),
};
const FAILURE = { status: 0, body: '', error: 'ECONNREFUSED' };
const TRY_AGAIN = '<a class="button main" href="">Try again</a>';
const globalLink = (path: string): string =>
  `<a href="https://hdl.handle.net/${path}" rel="noreferrer nofollow">`;

const NOT_NOW = 'This identifier cannot be looked up right now';

describe('error page', () => {
  test.each([
    ['is unreachable', FAILURE, 'The server that holds it does not respond; try again in a minute.'],
    ['is busy', { status: 503, body: '' }, 'The server that holds it is busy; try again'],
    [
      'reports an error',
      { status: 500, body: { responseCode: 2 } },
      'The server that holds it reports an error;',
    ],
    ['sends no record', { status: 200, body: '<html>' }, 'The server that holds it reports an error;'],
  ])('tells a reader what to do when the server %s', async (_what, answer, advice) => {
    mockUpstream(answer);
    const { text } = await (await startProxy()).ask('/21.T11998/abc');
    expect(text).toContain(`${NOT_NOW}</h1>`);
    expect(text).toContain(advice);
    expect(text).toContain(TRY_AGAIN);
  });

  test('tells a limited reader how long to wait', async () => {
    const env = { TRAFFIC_ENUMERATION_PER_MINUTE: '1', HTTP_TRUSTED_PROXIES: '127.0.0.1' };
    const leads = await startLeads(records, env);
    const from = { 'X-Forwarded-For': '198.51.100.7' };
    for (const name of ['a', 'b', 'c']) await leads.get(name, from);
    const { status, text } = await leads.get('d', from);
    expect([status, text.includes(`${NOT_NOW}</h1>`)]).toEqual([429, true]);
    expect(text).toMatch(/Too many requests come from your network; try again in 10 minutes\./);
  });

  test.each([
    ['/21.T11998/%zz', 'two hexadecimal digits follow each %'],
    ['/api-docs/index.html', 'a handle is a prefix, a slash and a suffix'],
    ['/hdl:', 'Enter a handle below.'],
    [
      '/21.T11998/loop',
      '<a href="/21.T11998/loop?noredirect&#38;ignore_aliases" rel="nofollow">Show the record</a>',
    ],
  ])('says how to correct %s', async (path, advice) => {
    const leads = await startLeads({ loop: [value(1, 'HS_ALIAS', '21.T11998/loop')] });
    expect((await leads.ask(path)).text).toContain(advice);
  });

  test('shows the record of an alias loop behind its link', async () => {
    const leads = await startLeads({ loop: [value(1, 'HS_ALIAS', '21.T11998/loop')] });
    const { status, text } = await leads.get('loop?noredirect&ignore_aliases');
    expect([status, text.includes('<h2 id="values">Values</h2>')]).toEqual([200, true]);
  });

  test('links to the global resolver and the contact for an unknown handle', async () => {
    const leads = await startLeads(records, CONTACT);
    const { text, headers } = await leads.get('no%20%3Cbody%3E');
    expect(text).toContain('Check the handle for typing errors');
    expect(text).toContain(globalLink('21.T11998/no%20%3Cbody%3E'));
    expect(text).toContain('<a href="mailto:pid@example.org">PID &#38; co</a></li>');
    expect(text).not.toContain('Try again');
    // The page has no request id, because browsers may cache it.
    expect(headers['cache-control']).toContain('max-age=30');
    expect([headers['x-request-id'], text.includes('Reference')]).toEqual([undefined, false]);
  });

  test.each([
    ['the Handle server reports it', { status: 400, body: { responseCode: 301 } }, {}],
    [
      'no server is configured for it',
      undefined,
      { UPSTREAMS: '[{"prefixes": "21.T1", "url": "https://hs.example.org"}]' },
    ],
  ])('links to the global resolver for a foreign prefix when %s', async (_when, answer, env) => {
    mockUpstream(answer);
    const proxy = await startProxy({ ...CONTACT, ...env });
    const { text } = await proxy.ask('/20.500.12345/x');
    expect(text).toContain('prefix');
    expect(text).toContain(globalLink('20.500.12345/x'));
    expect(text).toContain('<a href="mailto:pid@example.org">PID &#38; co</a></li>');
    expect(text).not.toContain('Check the handle');
  });

  test('omits the global resolver for an invalid handle', async () => {
    const { text } = await (await startLeads(records)).ask('/api-docs/index.html');
    expect(text).not.toContain('hdl.handle.net/');
  });

  test('offers a retry, and shows the request id of the log line, for a temporary error', async () => {
    const lines: string[] = [];
    const write = (line: string): unknown => lines.push(line);
    mockUpstream(FAILURE);
    const proxy = await startProxy({}, { logger: createLogger({ level: 'info', destination: { write } }) });
    const { text, headers } = await proxy.ask('/21.T11998/abc?noredirect');
    expect(text).toContain(TRY_AGAIN);
    const id = String(headers['x-request-id']);
    expect(text).toContain(`Reference: <code>${id}</code>`);
    await expect.poll(() => lines.filter((line) => line.includes(`"requestId":"${id}"`)).length).toBe(1);
  });

  test('offers a retry link to the handle for a posted form', async () => {
    mockUpstream(FAILURE);
    const proxy = await startProxy();
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const { text } = await proxy.ask('/', { method: 'POST', headers, body: 'hdl=21.T11998/a%26b' });
    expect(text).toContain('<a class="button main" href="/21.T11998/a%26b">Try again</a>');
  });

  test('offers no retry for an invalid request', async () => {
    const { status, text } = await (await startLeads(records)).ask('/21.T11998/%zz');
    expect([status, text.includes('Try again'), text.includes('Reference')]).toEqual([400, false, true]);
  });
});

describe('page of a mistyped handle', () => {
  test.each([
    ['21.T11998/abc.', '21.T11998/abc'],
    ['21.T11998/abc),', '21.T11998/abc'],
    ['21.T11998/a(b))', '21.T11998/a(b)'],
    ['21.T11998/abc/', '21.T11998/abc'],
    ['(21.T11998/abc)', '21.T11998/abc'],
    ['21.T11998/abc?noredirect', '21.T11998/abc'],
    ['DOI 10.5072/abc', '10.5072/abc'],
    ['doi: 10.5072/abc.', '10.5072/abc'],
    ['DOI: https://doi.org/10.5072/abc', '10.5072/abc'],
    ['hdl.handle.net/21.T11998/abc', '21.T11998/abc'],
    ['https://repository.example.org/handle/11858/abc?show=full', '11858/abc'],
    ['http://127.0.0.1:8080/api/handles/21.T11998/a%20b', '21.T11998/a b'],
    ['https://pid.example.org/21.T11998/50%', '21.T11998/50%'],
  ])('suggests for %s the handle %s', async (typed, meant) => {
    const leads = await startLeads(records);
    const { status, headers, text } = await leads.ask(`/${encodeURIComponent(typed)}`);
    expect([status, headers.location]).toEqual([404, undefined]);
    const [, path = '', shown] = /Did you mean <a href="\/([^"]*)"><bdi dir="ltr">([^<]*)</.exec(text) ?? [];
    expect([decodeURIComponent(path), shown]).toEqual([meant, meant]);
    // The link leads on without asking the server for the handle before.
    expect(leads.upstream.asked).toBe(1);
  });

  test.each([
    '21.T11998/nobody',
    '21.T11998/a(b)',
    '10.1002/(SICI)1097-0258(19980815)17:15<1661::AID-SIM968>3.0.CO;2-2',
    '21.T11998/',
    'https://example.org/2014/05/page',
    'api-docs/index.html,',
    '.',
    ')'.repeat(2000),
  ])('suggests nothing for %s', async (typed) => {
    const leads = await startLeads(records);
    const { status, text } = await leads.ask(`/${encodeURIComponent(typed)}`);
    expect([status, text.includes('Did you mean')]).toEqual([404, false]);
  });

  test('suggests a handle of a prefix that is not served here', async () => {
    const proxy = await startProxy({
      UPSTREAMS: '[{"prefixes": "21.T1", "url": "https://hs.example.org"}]',
    });
    const { text } = await proxy.ask('/DOI%2010.5072/abc');
    expect(text).toContain('Did you mean <a href="/10.5072/abc">');
    expect(text).toContain(globalLink('10.5072/abc'));
  });

  test('does not run what was typed', async () => {
    const leads = await startLeads(records);
    const { text } = await leads.ask(`/${encodeURIComponent('DOI 10.5072/"><script>alert(1)</script>.')}`);
    expect(text).toContain('Did you mean <a href="/10.5072/%22%3E%3Cscript%3Ealert(1)%3C/script"');
    expect(text).not.toContain('<script>alert');
  });
});

describe('front page', () => {
  test.each([
    ['prefix/suffix', {}],
    [
      '21.T2/abc',
      { UPSTREAMS: '[{"prefixes": "0.NA,21.T1.*,21.T2,21.T3", "url": "https://hs.example.org"}]' },
    ],
    ['21.T4/abc', { V2_PREFIXES: '21.T4/,21.T5/' }],
  ])('shows the example %s in the lookup field when the configuration is %j', async (example, env) => {
    const proxy = await startProxy(env);
    expect((await proxy.ask('/')).text).toContain(`placeholder="${example}"`);
  });
});
