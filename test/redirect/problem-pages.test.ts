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

describe('error page', () => {
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
