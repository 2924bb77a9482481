// Repositories as upstream servers: DSpace's Handle resolver, and landing page templates.
import nock from 'nock';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/app/config.js';
import { basic } from '../support/demo.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { importLines } from '../support/record-files.js';
import { UPSTREAM_URL, mockUpstream, recordOf } from '../support/upstream.js';

useNock();

const SITE = 'https://repository.test';
const PAGE = 'https://ui.repository.test/handle/123456/1';
const JSON_TYPE = { 'Content-Type': 'application/json;charset=utf-8' };
const LOGIN = { Authorization: basic('300:123456/USER', 'secret') };

const UPSTREAMS = [
  { prefixes: '123456', kind: 'dspace', url: `${SITE}/server` },
  { prefixes: '21.T11998', url: UPSTREAM_URL },
  { prefixes: '20.1', kind: 'template', url: 'https://journal.test/item/{suffix}?id={handle}' },
];

const start = (upstreams: object[] = UPSTREAMS, env: Record<string, string> = {}) =>
  startProxy({ UPSTREAMS: JSON.stringify(upstreams), ...env });

/** Mocks one GET to DSpace's resolver, which returns JSON without a trailing newline. */
function dspaceAnswers(path: string, body: unknown, { status = 200, text = JSON.stringify(body) } = {}) {
  return nock(SITE).get(path).reply(status, text, JSON_TYPE);
}

const jsonOf = ({ body }: { body: Buffer }): unknown => JSON.parse(body.toString());

const VALUE = {
  index: 100,
  type: 'URL',
  data: { format: 'string', value: PAGE },
  permissions: '1010',
  ttl: 100,
  timestamp: '1970-01-01T00:01:40Z',
};

describe('DSpace handle', () => {
  it('has the same single value as with DSpace’s plugin for the Java server, and is loaded once', async () => {
    dspaceAnswers('/server/resolve/123456/1', [PAGE]);
    const { ask } = await start();
    for (const target of ['/api/handles/123456/1', '/api/handles/123456/1?index=100&index=1']) {
      const answer = await ask(target);
      expect([answer.status, jsonOf(answer)]).toEqual([
        200,
        { responseCode: 1, handle: '123456/1', values: [VALUE] },
      ]);
    }
  });

  it('redirects to its page', async () => {
    dspaceAnswers('/server/resolve/123456/1', [PAGE]);
    const { ask } = await start();
    expect(await ask('/123456/1')).toMatchObject({ status: 302, headers: { location: PAGE } });
  });

  it('leads to a page with status 404 if it does not exist', async () => {
    dspaceAnswers('/server/resolve/123456/2', null);
    const { ask } = await start();
    expect((await ask('/123456/2')).status).toBe(404);
  });

  it.each([['null'], ['[]'], ['[null]']])('does not exist if DSpace responds with %s', async (text) => {
    dspaceAnswers('/server/resolve/123456/2', undefined, { text });
    const { ask } = await start();
    const answer = await ask('/api/handles/123456/2');
    expect([answer.status, jsonOf(answer)]).toEqual([404, { responseCode: 100, handle: '123456/2' }]);
  });

  it.each([
    ['has its resolver disabled', 404, '{"status":404}', 502],
    ['has a database error', 500, '{"status":500}', 502],
    ['6 has a database error', 200, '', 502],
    ['responds with an HTML page', 200, '<html>log in</html>', 502],
    ['responds with an object', 200, '{"url":"https://ui.repository.test/"}', 502],
    ['responds with a javascript: URL', 200, '["javascript:alert(1)"]', 502],
    ['responds with a relative URL', 200, '["/handle/123456/1"]', 502],
    [
      'responds with a URL that contains a line break',
      200,
      '["https://ui.repository.test/\\r\\nSet-Cookie:a"]',
      502,
    ],
    ['is too busy', 503, '', 503],
    ['responds with 400 for an ordinary name', 400, '', 502],
  ])('cannot be resolved if DSpace %s', async (_what, status, text, expected) => {
    dspaceAnswers('/server/resolve/123456/1', undefined, { status, text });
    const { ask } = await start();
    expect((await ask('/api/handles/123456/1')).status).toBe(expected);
  });

  it('is served stale while DSpace fails', async () => {
    dspaceAnswers('/server/resolve/123456/1', [PAGE]);
    const { ask, pass } = await start();
    await ask('/api/handles/123456/1');
    pass(101_000);
    dspaceAnswers('/server/resolve/123456/1', undefined, { status: 404 });
    const answer = await ask('/api/handles/123456/1');
    expect([answer.status, answer.headers['cache-status']]).toEqual([
      200,
      expect.stringContaining('detail=error'),
    ]);
  });

  it('has a case-sensitive suffix, including in the cache', async () => {
    dspaceAnswers('/server/resolve/123456/a', ['https://ui.repository.test/handle/123456/a']);
    dspaceAnswers('/server/resolve/123456/A', null);
    const { ask } = await start();
    expect((await ask('/api/handles/123456/a')).status).toBe(200);
    expect((await ask('/api/handles/123456/A')).status).toBe(404);
  });

  it.each([
    ['123456/a+b c?d', '/server/resolve/123456/a%2Bb%20c%3Fd'],
    ['123456/1/', '/server/resolve/123456/1/'],
    ['123456/../listprefixes', '/server/resolve/123456%2F..%2Flistprefixes'],
  ])('is requested with URL delimiters escaped: %s at %s', async (handle, path) => {
    dspaceAnswers(path, null);
    const { ask } = await start();
    expect((await ask(`/api/handles/${encodeURIComponent(handle)}`)).status).toBe(404);
  });

  it.each([['123456/50%'], ['123456/a;b'], ['123456/a//b'], ['123456/a\\b']])(
    'does not exist if DSpace’s firewall rejects its name: %s',
    async (handle) => {
      nock(SITE)
        .get(/^\/server\/resolve\//)
        .reply(400);
      const { ask } = await start();
      const path = `/api/handles/${encodeURIComponent(handle)}`;
      for (const headers of [{}, LOGIN]) expect((await ask(path, { headers })).status).toBe(404);
    },
  );

  it('is served to requests with a login, which is not forwarded', async () => {
    nock(SITE, { badheaders: ['authorization'] })
      .get('/server/resolve/123456/1')
      .reply(200, [PAGE]);
    const { ask } = await start();
    for (const target of ['/api/handles/123456/1', '/api/handles/123456/1?publicOnly=false']) {
      expect(jsonOf(await ask(target, { headers: LOGIN }))).toMatchObject({
        responseCode: 1,
        values: [VALUE],
      });
    }
    expect((await ask('/api/handles/123456/1', { method: 'HEAD', headers: LOGIN })).status).toBe(200);
    const v2 = await ask('/api/v2/handles/123456/1', { headers: LOGIN });
    expect([v2.status, jsonOf(v2)]).toMatchObject([200, [{ idx: 100, type: 'URL', parsed_data: PAGE }]]);
  });

  it('is read again with auth=true for a request with a login', async () => {
    const reads = nock(SITE).get('/server/resolve/123456/1').twice().reply(200, [PAGE]);
    const { ask } = await start();
    for (const query of ['', '?auth=true'])
      expect((await ask(`/api/handles/123456/1${query}`, { headers: LOGIN })).status).toBe(200);
    expect(reads.isDone()).toBe(true);
  });

  it('is resolved in a batch, next to a handle at a Handle server', async () => {
    dspaceAnswers('/server/resolve/123456/1', [PAGE]);
    const upstream = mockUpstream(recordOf());
    const { ask } = await start(UPSTREAMS);
    const { body } = await ask('/api/handles?handle=123456/1&handle=21.T11998/abc');
    expect(body.toString()).toContain(PAGE);
    expect(upstream.targets).toEqual(['/api/handles/21.T11998/abc']);
  });

  it('is not confused with its prefix record, which is read from a Handle server', async () => {
    const upstream = mockUpstream(recordOf(undefined, '0.NA/123456'));
    const { ask } = await start([UPSTREAMS[0]!, { prefixes: '*', url: UPSTREAM_URL }]);
    expect((await ask('/api/handles/0.NA/123456')).status).toBe(200);
    expect((await ask('/api/handles/123456')).status).toBe(200);
    expect(upstream.targets).toEqual(['/api/handles/0.NA/123456']);
  });
});

describe('write to a repository', () => {
  it.each([
    ['PUT', '/api/handles/123456/1'],
    ['DELETE', '/api/handles/123456/1'],
    ['POST', '/api/handles/123456/1'],
    ['PUT', '/api/v2/handles/123456/1'],
    ['DELETE', '/api/v2/handles/123456/1'],
    ['POST', '/api/v2/handles/123456'],
    ['PUT', '/api/handles/20.1/a'],
  ])('is rejected: %s %s', async (method, path) => {
    const { url } = await start(UPSTREAMS, { V2_PREFIXES: '123456', DELETION_HANDLES: 'true' });
    const body = method === 'DELETE' ? null : '[{"type":"URL","parsed_data":"https://example.org/"}]';
    const headers = { ...LOGIN, 'Content-Type': 'application/json' };
    const answer = await fetch(`${url}${path}`, { method, headers, body });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
    expect(await answer.text()).toContain('the repository mints and changes them');
  });
});

describe('verification of a signature by a handle of a repository', () => {
  it.each(['GET', 'POST'])('is refused as for a prefix without a server: %s', async (method) => {
    const { ask } = await start(UPSTREAMS);
    const answer = await ask('/api/verifications/300:123456/1', { method });
    expect([answer.status, jsonOf(answer)]).toMatchObject([400, { responseCode: 301 }]);
    expect(answer.headers).not.toHaveProperty('allow');
  });
});

describe('handle list of a repository', () => {
  const listed = ['123456/2', '123456/1', '1234567/1', '123456/10'];
  const OF_PREFIX = ['123456/2', '123456/1', '123456/10'];

  it('contains exactly the handles of the prefix, as a whole or in pages', async () => {
    nock(SITE).persist().get('/server/listhandles/123456/').reply(200, listed, JSON_TYPE);
    const { ask } = await start();
    const list = async (query: string) => jsonOf(await ask(`/api/handles?prefix=123456${query}`));
    const head = { responseCode: 1, prefix: '123456', totalCount: '3' };
    expect(await list('')).toEqual({ ...head, handles: OF_PREFIX });
    expect(await list('&page=1&pageSize=2')).toEqual({
      ...head,
      page: 1,
      pageSize: 2,
      handles: ['123456/10'],
    });
    expect(await list('&page=0&pageSize=0')).toEqual({ ...head, page: 0, pageSize: 0, handles: [] });
    const v2 = await ask('/api/v2/handles/123456/?limit=2', { headers: LOGIN });
    expect([v2.status, v2.body.toString().trim()]).toEqual([200, '2\n1']);
  });

  it('is empty if DSpace responds with null', async () => {
    dspaceAnswers('/server/listhandles/123456/', null);
    const { ask } = await start();
    expect(jsonOf(await ask('/api/handles?prefix=123456'))).toMatchObject({ totalCount: '0', handles: [] });
  });

  it('is refused with 501 if DSpace hides its lists, or if the prefix has a template', async () => {
    dspaceAnswers('/server/listhandles/123456/', undefined, { status: 404 });
    const { ask } = await start();
    for (const prefix of ['123456', '20.1']) {
      const answer = await ask(`/api/handles?prefix=${prefix}`);
      expect([answer.status, jsonOf(answer)]).toMatchObject([501, { responseCode: 5 }]);
    }
  });
});

describe('landing page from a template', () => {
  const page = (suffix: string, query = suffix) =>
    `https://journal.test/item/${suffix}?id=20.1%2F${query.replaceAll('/', '%2F')}`;

  it('is the redirect target of every handle without dot segments, without an upstream request', async () => {
    const { ask } = await start();
    expect(await ask('/20.1/a/b%26c')).toMatchObject({
      status: 302,
      headers: { location: page('a/b%26c') },
    });
    expect((await ask('/api/handles/20.1/..%2Fadmin')).status).toBe(404);
  });

  it.each([
    [200, 200],
    [302, 200],
    [404, 404],
    [410, 404],
    [401, 502],
    [403, 502],
    [429, 503],
    [500, 502],
  ])('is checked with a HEAD request whose status %i results in %i', async (status, expected) => {
    nock('https://journal.test').head('/item/7?id=20.1%2F7').reply(status);
    const { ask } = await start([{ ...UPSTREAMS[2], existenceCheck: true }]);
    const answer = await ask('/api/handles/20.1/7');
    expect(answer.status).toBe(expected);
    if (expected === 200) expect(answer.body.toString()).toContain(page('7'));
  });
});

describe('prefix of kind none', () => {
  it('has no server, even if a server has the pattern *', async () => {
    const { ask } = await start([
      { prefixes: '99.1', kind: 'none' },
      { prefixes: '*', url: UPSTREAM_URL },
    ]);
    const answer = await ask('/api/handles/99.1/a');
    expect([answer.status, jsonOf(answer)]).toMatchObject([400, { responseCode: 301 }]);
  });

  it('serves imported records indefinitely', async () => {
    const { ask, app, pass } = await start([
      { prefixes: '99.1', kind: 'none' },
      { prefixes: '*', url: UPSTREAM_URL },
    ]);
    const times = {
      requestedAt: '2026-11-21T09:00:00Z',
      staleAt: '2026-11-21T09:30:00Z',
      deleteAt: '2026-11-21T09:45:00Z',
    };
    const record = { handle: '99.1/a', ...times, values: [VALUE] };
    expect(await importLines({ app }, [JSON.stringify(record)])).toBe(1);
    pass(400 * 86_400_000);
    expect((await ask('/api/handles/99.1/a')).status).toBe(200);
  });
});

describe('repository configuration', () => {
  it.each([
    [{ kind: 'dspace' }, 'give the address of the server'],
    [{ kind: 'none', url: SITE }, 'leave it out'],
    [{ url: `${SITE}/server` }, 'DSpace needs kind: dspace'],
    [{ kind: 'dspace', url: `${SITE}/server/{handle}` }, 'give the address of its backend'],
    [{ kind: 'template', url: `${SITE}/items` }, 'give an address with {handle} or {suffix}'],
    [{ kind: 'template', url: 'https://{prefix}.test/{suffix}' }, 'without credentials'],
    [{ kind: 'template', url: 'https://user@journal.test/{suffix}' }, 'without credentials'],
    [{ kind: 'eprints', url: SITE }, 'give one of handle-server, dspace, template, none'],
  ])('is rejected: %j', (server, message) => {
    const env = { UPSTREAMS: JSON.stringify([{ prefixes: '1', ...server }]) };
    expect(() => loadConfig({ env, readFile: () => '' })).toThrow(message);
  });
});

describe('several servers for a prefix', () => {
  const OLD = 'https://old.test';
  const several = [
    { prefixes: '123456', kind: 'dspace', url: `${SITE}/server` },
    { prefixes: '123456', kind: 'dspace', url: `${OLD}/server` },
  ];
  const oldAnswers = (body: unknown, status = 200): nock.Scope =>
    nock(OLD).get('/server/resolve/123456/1').reply(status, JSON.stringify(body), JSON_TYPE);

  it('are asked in order, the next one if a handle is not found', async () => {
    dspaceAnswers('/server/resolve/123456/1', null);
    oldAnswers([PAGE]);
    const { ask } = await start(several);
    expect(await ask('/123456/1')).toMatchObject({ status: 302, headers: { location: PAGE } });
    const withLogin = await ask('/api/v2/handles/123456/1', { headers: LOGIN });
    expect(withLogin.text).toContain(PAGE);
  });

  it('report a missing handle only if all of them do', async () => {
    dspaceAnswers('/server/resolve/123456/1', null);
    oldAnswers(null);
    const { ask } = await start(several);
    expect((await ask('/api/handles/123456/1')).status).toBe(404);
  });

  it.each(['first', 'second'])('make a read fail if the %s server fails', async (failing) => {
    dspaceAnswers('/server/resolve/123456/1', null, { status: failing === 'first' ? 500 : 200 });
    if (failing === 'second') oldAnswers({}, 500);
    const { ask } = await start(several);
    expect((await ask('/api/handles/123456/1')).status).toBe(502);
  });

  it('may end with a read-only Handle server', async () => {
    dspaceAnswers('/server/resolve/123456/1', null);
    nock(UPSTREAM_URL)
      .get('/api/handles/123456/1')
      .reply(200, recordOf([], '123456/1').body as object);
    const { ask } = await start([several[0]!, { prefixes: '123456', url: UPSTREAM_URL, readOnly: true }]);
    expect((await ask('/api/handles/123456/1')).status).toBe(200);
    const rejected = await ask('/api/handles/123456/1', { method: 'PUT', headers: LOGIN, body: '{}' });
    expect(rejected.status).toBe(405);
  });

  it.each([
    ['takes writes', [several[0]!, { prefixes: '123456', url: UPSTREAM_URL }]],
    ['follows a Handle server', [{ prefixes: '123456', url: UPSTREAM_URL, readOnly: true }, several[0]!]],
  ])('are rejected at the start if one %s', (_, servers) => {
    const env = { UPSTREAMS: JSON.stringify(servers) };
    expect(() => loadConfig({ env, readFile: () => '' })).toThrow('prefix 123456 is given twice');
  });

  it('do not share a prefix that one of them lists twice', () => {
    const env = { UPSTREAMS: JSON.stringify([{ prefixes: '123456,123456', url: UPSTREAM_URL }]) };
    expect(() => loadConfig({ env, readFile: () => '' })).not.toThrow();
  });
});
