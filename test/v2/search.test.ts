// A search queries the reverse lookup service, or else reads records; it never returns partial results.
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import { basic } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { USER01, askV2, read } from '../support/v2.js';
import { type Scripted, scriptUpstream } from '../support/v2-upstream.js';
import { UPSTREAM_URL } from '../support/upstream.js';
import { URL_VALUE } from '../support/v2-record.js';

useNock();

const PREFIX = '21.T11998';

const urlRecord = (suffix: string, ...urls: string[]): Scripted => ({
  status: 200,
  body: {
    responseCode: 1,
    handle: `${PREFIX}/${suffix}`,
    values: urls.map((value, at) => ({ ...URL_VALUE, index: at + 1, data: { format: 'string', value } })),
  },
});
const listed = (...suffixes: string[]): Scripted => ({
  status: 200,
  body: {
    responseCode: 1,
    totalCount: String(suffixes.length),
    handles: suffixes.map((s) => `${PREFIX}/${s}`),
  },
});
const uncounted: Scripted = { status: 200, body: { responseCode: 1, handles: [] } };
const counted = (count: number): Scripted => ({
  status: 200,
  body: { responseCode: 1, totalCount: String(count), page: 0, pageSize: 0, handles: [] },
});

async function found(query: string, script: Scripted[], env: Record<string, string> = {}, maxHandles = 2000) {
  const { sent } = scriptUpstream(...script);
  const { url } = await startProxy({ ...fixed({ v2: { search: { concurrency: 1, maxHandles } } }), ...env });
  return { answer: await askV2(url)(`/${PREFIX}?${query}`), sent };
}

const three = [
  counted(3),
  listed('A', 'B', 'C'),
  urlRecord('A', 'https://example.org/one'),
  urlRecord('B', 'https://example.org/two', 'https://other.org/'),
  urlRecord('C', 'https://other.org/'),
];

describe('ePIC v2 search without a reverse lookup service', () => {
  test("counts and lists handles with the caller's login, and reads them through the cache", async () => {
    const { answer, sent } = await found('URL=*example*', three);
    expect([answer.status, read(answer)]).toEqual([200, ['A', 'B']]);
    expect(sent.map(({ target, authorization }) => [target, authorization])).toEqual([
      [`/api/handles?prefix=${PREFIX}&page=0&pageSize=0`, USER01],
      [`/api/handles?prefix=${PREFIX}`, USER01],
      ...['A', 'B', 'C'].map((suffix) => [`/api/handles/${PREFIX}/${suffix}`, undefined]),
    ]);
  });

  test.each([
    ['URL=https://example.org/one', ['A']],
    ['URL=https%3A%2F%2Fexample.org%2Fone', ['A']],
    ['URL=*', ['A', 'B', 'C']],
    ['URL=*other*&URL=*two', ['B']],
    ['URL=*example*&handle=B', ['B']],
    ['handle=b', ['B']],
    ['url=*', []],
    ['CHECKSUM=*', []],
    ['URL=*nothing*', []],
    ['URL=*org/&limit=1&page=2', ['C']],
    ['URL=*&limit=0', ['A', 'B', 'C']],
    ['URL=*~.org/', ['B', 'C']],
    ['URL=~*', []],
  ])('resolves %s to the handles %j', async (query, suffixes) => {
    const { answer } = await found(query, three);
    expect([answer.status, read(answer)]).toEqual([200, suffixes]);
  });

  test('returns 501 for too many handles, and names the key to set', async () => {
    const { answer, sent } = await found('URL=*', [counted(3)], {}, 2);
    expect([answer.status, sent.length]).toEqual([501, 1]);
    expect(answer.text).toContain('reverseLookup.url');
    expect(answer.text).toContain('at most 2 are read for one search');
  });

  test('fails when the server does not count its handles', async () => {
    const { answer, sent } = await found('URL=*', [uncounted]);
    expect([answer.status, sent.length]).toEqual([502, 1]);
  });

  test('fails when one record is unreadable', async () => {
    const script = [...three.slice(0, 3), { status: 500, body: { responseCode: 2 } }];
    expect((await found('URL=*', script)).answer.status).toBe(502);
  });

  test('omits a handle deleted during the search', async () => {
    const script = [...three.slice(0, 4), { status: 404, body: { responseCode: 100 } }];
    expect(read((await found('URL=*', script)).answer)).toEqual(['A', 'B']);
  });

  test('requires the right to list handles', async () => {
    const { answer } = await found('URL=*', [{ status: 403, body: { responseCode: 400 } }]);
    expect(answer.status).toBe(403);
  });
});

describe('ePIC v2 searches at the same time', () => {
  test('are refused beyond as many waiting records as 16 of the largest, and one alone is not', async () => {
    const suffixes = Array.from({ length: 8 }, (_, at) => `S${at}`);
    const urls = Array.from({ length: 400 }, () => 'https://example.org/');
    nock(UPSTREAM_URL)
      .persist()
      .get(/.*/)
      .reply((target) => {
        const [suffix] = /S\d$/.exec(target) ?? [];
        const list = target.includes('pageSize=0') ? counted(suffixes.length) : listed(...suffixes);
        const { status, body } = suffix === undefined ? list : urlRecord(suffix, ...urls);
        return [status, JSON.stringify(body)];
      });
    const { url } = await startProxy({ UPSTREAM_MAX_RECORD_SIZE: '64KiB' });
    const search = () => askV2(url)(`/${PREFIX}?URL=*example*`);
    const answers = await Promise.all(Array.from({ length: 60 }, search));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    for (const answer of refused) {
      expect([answer.status, read(answer)]).toMatchObject([503, { code: 'OVERLOADED' }]);
      expect(answer.headers['retry-after']).toBe('1');
    }
    const alone = await search();
    expect([alone.status, read(alone)]).toEqual([200, suffixes]);
  });
});

describe('ePIC v2 search with a reverse lookup service', () => {
  const LOOKUP_URL = 'http://lookup.test:9000';
  const env = { REVERSE_LOOKUP_URL: LOOKUP_URL, REVERSE_LOOKUP_FORWARD_LOGIN: 'true' };
  const KEPT = { REVERSE_LOOKUP_URL: LOOKUP_URL };

  function lookup(target: string, status: number, body: unknown): void {
    nock(LOOKUP_URL, { reqheaders: { authorization: USER01, accept: 'application/json' } })
      .get(target)
      .reply(status, body as nock.Body);
  }

  test("sends the caller's conditions to the service, and reads no record", async () => {
    lookup(`/hrls/handles/${PREFIX}?URL=*x%2Fy*&EMAIL=a%40b&limit=1000`, 200, [
      `${PREFIX}/A`,
      `${PREFIX}/B/C`,
    ]);
    const { answer, sent } = await found('URL=*x/y*&EMAIL=a@b', [], env);
    expect([answer.status, read(answer), sent]).toEqual([200, ['A', 'B%2FC'], []]);
  });

  test('slices a later page from one response, since page numbering differs between services', async () => {
    lookup(
      `/hrls/handles/${PREFIX}?URL=*&limit=4`,
      200,
      ['A', 'B', 'C', 'D'].map((s) => `${PREFIX}/${s}`),
    );
    expect(read((await found('URL=*&limit=2&page=2', [], env)).answer)).toEqual(['C', 'D']);
  });

  test("forwards the identity that v2.identities names, as the Handle server's login", async () => {
    nock(LOOKUP_URL, { reqheaders: { authorization: basic('300:21.T11998/ALICE', 'secret') } })
      .get(`/hrls/handles/${PREFIX}?URL=x&limit=1000`)
      .reply(200, [`${PREFIX}/A`]);
    const { url } = await startProxy({ ...env, V2_IDENTITIES: 'alice=300:21.T11998/ALICE' });
    const answer = await askV2(url)(`/${PREFIX}?URL=x`, { as: basic('alice', 'secret') });
    expect([answer.status, read(answer)]).toEqual([200, ['A']]);
  });

  test('returns an empty list when nothing matches', async () => {
    lookup(`/hrls/handles/${PREFIX}?URL=x&limit=1000`, 200, []);
    expect(read((await found('URL=x', [], env)).answer)).toEqual([]);
  });

  function lookupWithoutLogin(status: number, body: unknown): void {
    nock(LOOKUP_URL, { badheaders: ['authorization'] })
      .get(`/hrls/handles/${PREFIX}?URL=x&limit=1000`)
      .reply(status, body as nock.Body);
  }

  test('checks the login at the Handle server, and does not send it to the service', async () => {
    lookupWithoutLogin(200, [`${PREFIX}/A`]);
    const { answer, sent } = await found('URL=x', [{ status: 404, body: { responseCode: 100 } }], KEPT);
    expect([answer.status, read(answer)]).toEqual([200, ['A']]);
    expect(sent.map(({ target, authorization }) => [target, authorization])).toEqual([
      ['/api/handles/21.T11998/USER01?publicOnly=true', USER01],
    ]);
  });

  test.each([
    ['a repository', '20.1/x'],
    ['kind: none', '99.1/x'],
    ['a read-only server', '30.1/x'],
    ['no server', '5.5/x'],
  ])('checks a login whose prefix has %s at the main server', async (_, handle) => {
    const { sent } = scriptUpstream({ status: 401 });
    const UPSTREAMS = JSON.stringify([
      { prefixes: '20.1', kind: 'template', url: 'https://journal.test/{suffix}' },
      { prefixes: '99.1', kind: 'none' },
      { prefixes: '30.1', url: 'https://read-only.test', readOnly: true },
      { prefixes: PREFIX, url: UPSTREAM_URL },
    ]);
    const { url } = await startProxy({ ...KEPT, UPSTREAMS });
    const as = basic(`300:${handle}`, 'made up');
    expect((await askV2(url)(`/${PREFIX}?URL=x`, { as })).status).toBe(401);
    expect(sent.map(({ target, authorization }) => [target, authorization])).toEqual([
      [`/api/handles/${handle}?publicOnly=true`, as],
    ]);
  });

  test('returns 401, and does not query the service, when the Handle server rejects the login', async () => {
    expect((await found('URL=x', [{ status: 401 }], KEPT)).answer.status).toBe(401);
  });

  test.each([401, 403])(
    'returns 502 when the service responds with %i to a request that has no login',
    async (status) => {
      lookupWithoutLogin(status, '');
      const { answer } = await found('URL=x', [{ status: 404, body: { responseCode: 100 } }], KEPT);
      expect(answer.status).toBe(502);
      expect(JSON.parse(answer.text)).toMatchObject({
        code: 'UPSTREAM_INVALID_RESPONSE',
        detail: 'Invalid response from the reverse lookup service',
      });
    },
  );

  test.each([
    ['accepts a handle of 2048 bytes with an escape for each', 2048 - PREFIX.length - 1, 200],
    ['returns 502 for text that is too long for a handle', 2 ** 20, 502],
  ])('%s', async (_, escapes, status) => {
    const body = `["${PREFIX}/${'\\u0041'.repeat(escapes)}"]`;
    lookup(`/hrls/handles/${PREFIX}?URL=x&limit=1000`, 200, body);
    expect((await found('URL=x', [], env)).answer.status).toBe(status);
  });

  test.each([
    [401, '', 401],
    [403, '', 403],
    [404, '<html>', 502],
    [200, '{"responseCode":1}', 502],
    [500, '', 502],
  ])('maps the service response %i %j to %i', async (status, body, ours) => {
    lookup(`/hrls/handles/${PREFIX}?URL=x&limit=1000`, status, body);
    expect((await found('URL=x', [], env)).answer.status).toBe(ours);
  });
});
