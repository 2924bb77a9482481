import { describe, expect, test } from 'vitest';
import type { Asked } from '../support/ask.js';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { USER01, type V2Question, askV2, read } from '../support/v2.js';
import { type Scripted, reply, scriptUpstream, sends } from '../support/v2-upstream.js';
import { RECORD } from '../support/v2-record.js';

useNock();

const JSON_ASKED = { Accept: 'application/json' };
const PREFIX = '21.T11998';

const listed = (...suffixes: string[]): Scripted => ({
  status: 200,
  body: {
    responseCode: 1,
    prefix: PREFIX,
    totalCount: String(suffixes.length),
    handles: suffixes.map((suffix) => `${PREFIX}/${suffix}`),
  },
});

async function asked(
  path: string,
  script: Scripted[],
  { env = {}, ...question }: V2Question & { env?: Record<string, string> } = {},
) {
  const { sent } = scriptUpstream(...script);
  const { url } = await startProxy(env);
  const answer: Asked = await askV2(url)(path, { headers: JSON_ASKED, ...question });
  return { answer, sent };
}

describe('ePIC v2 prefix list', () => {
  const env = { V2_PREFIXES: '21.T11998/, 21.T12345' };

  test.each(['', '/'])('contains v2.prefixes for the request path %j', async (path) => {
    const { answer, sent } = await asked(path, [reply.missing], { env });
    expect([answer.status, read(answer)]).toEqual([200, ['21.T11998/', '21.T12345/']]);
    expect(sent).toEqual([sends('GET', '/21.T11998/USER01?publicOnly=true', USER01)]);
  });

  test('rejects a wrong password', async () => {
    const { answer } = await asked('/', [reply.wrongLogin], { env });
    expect(answer.status).toBe(401);
  });

  test('requires no login when v2.anonymousRead is true', async () => {
    const { answer } = await asked('/', [], { env: { ...env, V2_ANONYMOUS_READ: 'true' }, as: null });
    expect(read(answer)).toHaveLength(2);
  });
});

describe('ePIC v2 handle list', () => {
  test.each([
    ['', 'page=0&pageSize=1000'],
    ['?limit=10', 'page=0&pageSize=10'],
    ['?limit=10&page=3', 'page=2&pageSize=10'],
    ['?limit=0', ''],
  ])('is requested for %j with the upstream paging %j', async (query, paging) => {
    const { answer, sent } = await asked(`/${PREFIX}${query}`, [listed('A', 'B C', 'D/E')]);
    const target = `?prefix=21.T11998${paging === '' ? '' : `&${paging}`}`;
    expect(sent).toEqual([sends('GET', target, USER01)]);
    expect([answer.status, read(answer)]).toEqual([200, ['A', 'B%20C', 'D%2FE']]);
  });

  test.each([
    [{}, 'text/plain;charset=utf-8', 'A\nB\n'],
    [{ Accept: '*/*' }, 'text/plain;charset=utf-8', 'A\nB\n'],
    [{ Accept: 'text/html' }, 'text/plain;charset=utf-8', 'A\nB\n'],
    [JSON_ASKED, 'application/json;charset=utf-8', '["A","B"]'],
    [{ Accept: 'application/json, text/plain, */*' }, 'application/json;charset=utf-8', '["A","B"]'],
  ])('is returned for the request headers %j as %s', async (headers, type, text) => {
    const { answer } = await asked(`/${PREFIX}/`, [listed('A', 'B')], { headers });
    expect([answer.headers['content-type'], answer.text]).toEqual([type, text]);
  });

  test('includes the values of each handle for Depth: 1, read anonymously through the cache', async () => {
    const headers = { ...JSON_ASKED, Depth: '1' };
    const script = [
      listed('A', 'GONE'),
      reply.record(RECORD, `${PREFIX}/A`),
      { status: 404, body: { responseCode: 100 } },
    ];
    const { answer, sent } = await asked(`/${PREFIX}`, script, {
      headers,
      env: fixed({ v2: { search: { concurrency: 1 } } }),
    });
    const shown = read(answer) as Record<string, { idx: number }[]>;
    expect(Object.keys(shown)).toEqual(['/handles/21.T11998/A']);
    expect(shown['/handles/21.T11998/A']!.map(({ idx }) => idx)).toEqual([1, 100]);
    expect(sent.slice(1).map(({ authorization }) => authorization)).toEqual([undefined, undefined]);
  });

  test('returns 501 for Depth: 1 when the list has too many handles', async () => {
    const headers = { ...JSON_ASKED, Depth: '1' };
    const env = fixed({ v2: { search: { maxHandles: 1 } } });
    const { answer, sent } = await asked(`/${PREFIX}`, [listed('A', 'B')], { headers, env });
    expect([answer.status, sent.length]).toEqual([501, 1]);
  });

  test.each([
    ['forbidden', { status: 403, body: { responseCode: 400 } }, 403],
    ['a wrong login', reply.wrongLogin, 401],
    ['no listing', { status: 501, body: { responseCode: 5 } }, 501],
    ['a foreign prefix', { status: 400, body: { responseCode: 301 } }, 404],
    ['no list', { status: 200, body: { responseCode: 1 } }, 502],
    ['an object in a list', { status: 200, body: { responseCode: 1, handles: ['21.T1/A', {}] } }, 502],
    ['a number in a list', { status: 200, body: { responseCode: 1, handles: [1] } }, 502],
  ] satisfies [string, Scripted, number][])(
    'reports the upstream error: %s',
    async (_what, refusal, status) => {
      const { answer } = await asked(`/${PREFIX}`, [refusal]);
      expect(answer.status).toBe(status);
    },
  );

  test.each(['limit=-1', 'limit=x', 'page=0', 'page=1.5', 'limit=', 'URL=*&'.repeat(33)])(
    'returns 400 for %s',
    async (query) => {
      const { answer, sent } = await asked(`/${PREFIX}?${query}`, []);
      expect([answer.status, sent]).toEqual([400, []]);
    },
  );
});
