import { describe, expect, test } from 'vitest';
import { basic } from '../support/demo.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { USER01, USER02, type V2Question, askV2, read } from '../support/v2.js';
import { type Scripted, type SentUpstream, scriptUpstream } from '../support/v2-upstream.js';
import {
  ADMIN_VALUE,
  RECORD,
  SECRET_VALUE,
  URL_INPUT,
  URL_VALUE,
  withoutStamp,
} from '../support/v2-record.js';

useNock();

const UUID = '[\\da-f]{8}-[\\da-f]{4}-[\\da-f]{4}-[\\da-f]{4}-[\\da-f]{12}';
const created: Scripted = { status: 201, body: { responseCode: 1 } };
const exists: Scripted = { status: 409, body: { responseCode: 101 } };
const missing: Scripted = { status: 404, body: { responseCode: 100 } };
const record: Scripted = { status: 200, body: { responseCode: 1, values: RECORD } };
const noResponse: Scripted = { status: 0, hangs: true };

async function posted(script: Scripted[], path = '/21.T11998', question: V2Question = {}) {
  const { sent } = scriptUpstream(...script);
  const { url } = await startProxy();
  const answer = await askV2(url)(path, { method: 'POST', body: [URL_INPUT], ...question });
  return { answer, sent, url };
}

const nameIn = ({ target }: SentUpstream): string => /^\/api\/handles\/([^?]*)/.exec(target)![1]!;

describe('ePIC v2 POST to a prefix', () => {
  test.each(['/21.T11998', '/21.T11998/'])('creates a handle with a new name for %s', async (path) => {
    const { answer, sent, url } = await posted([created, record], path);
    const name = nameIn(sent[0]!);
    expect(name).toMatch(new RegExp(`^21\\.T11998/${UUID}$`));
    expect(sent).toEqual([
      {
        method: 'PUT',
        target: `/api/handles/${name}?overwrite=false`,
        authorization: USER01,
        contentType: 'application/json',
        body: { handle: name, values: [withoutStamp(URL_VALUE), withoutStamp(ADMIN_VALUE)] },
      },
      {
        method: 'GET',
        target: `/api/handles/${name}?auth=true`,
        authorization: USER01,
        contentType: undefined,
        body: undefined,
      },
    ]);
    expect([answer.status, read(answer)]).toEqual([201, { 'epic-pid': name }]);
    expect(answer.headers.location).toBe(`${url}/api/v2/handles/${name}`);
  });

  test.each([
    ['?prefix=GRNET&suffix=TEST', `GRNET${UUID}TEST`],
    ['?generator=juuid&prefix=a-', `a-${UUID}`],
    ['/?generator=uuid', UUID],
  ])('mints a matching name for %s', async (query, pattern) => {
    const { sent } = await posted([created, record], `/21.T11998${query}`);
    expect(nameIn(sent[0]!)).toMatch(new RegExp(`^21\\.T11998/${pattern}$`));
  });

  test('returns 400 for an unknown generator', async () => {
    const { answer, sent } = await posted([], '/21.T11998?generator=gwdgpid');
    expect([answer.status, sent]).toEqual([400, []]);
    expect(answer.text).toContain('gwdgpid');
  });

  test.each([
    ['NUL', '?suffix=%00'],
    ['more than 2048 bytes', `?prefix=${'a'.repeat(2048)}`],
  ])('returns 400 for a name with %s', async (_what, query) => {
    const { answer, sent } = await posted([], `/21.T11998${query}`);
    expect([answer.status, sent]).toEqual([400, []]);
  });

  test.each([{ 'If-Match': '"tag"' }, { 'If-None-Match': '*' }])(
    'returns 412 for %j: the collection exists, and has no ETag',
    async (headers) => {
      const { answer, sent } = await posted([], '/21.T11998', { headers });
      expect([answer.status, sent]).toEqual([412, []]);
    },
  );

  test('tries a different name when the first exists', async () => {
    const second = await posted([exists, created, record]);
    expect(second.answer.status).toBe(201);
    expect(new Set(second.sent.slice(0, 2).map(nameIn)).size).toBe(2);
  });

  test('fails after five existing names', async () => {
    const { answer, sent } = await posted([exists, exists, exists, exists, exists]);
    expect([answer.status, sent.length]).toEqual([502, 5]);
  });

  test.each<[first: Scripted, status: number]>([
    [{ status: 403, body: { responseCode: 400 } }, 403],
    // The Handle server has not received the request.
    [{ status: 0, error: 'ECONNREFUSED' }, 502],
  ])('uses a different name for a repetition after %j', async (first, status) => {
    const { sent } = scriptUpstream(first, created, record);
    const v2 = askV2((await startProxy()).url);
    const post = () => v2('/21.T11998', { method: 'POST', body: [URL_INPUT] });
    expect([(await post()).status, (await post()).status]).toEqual([status, 201]);
    expect(nameIn(sent[0]!)).not.toBe(nameIn(sent[1]!));
  });
});

describe('ePIC v2 POST with an unknown outcome', () => {
  test.each([noResponse, { status: 0, error: 'ECONNRESET' }, { status: 500, body: { responseCode: 2 } }])(
    'returns 201 when the minted handle exists: %j',
    async (failure) => {
      const { answer, sent } = await posted([failure, record, record]);
      expect(sent.map(({ method }) => method)).toEqual(['PUT', 'GET', 'GET']);
      expect(new Set(sent.map(nameIn)).size).toBe(1);
      expect([answer.status, read(answer)]).toEqual([201, { 'epic-pid': nameIn(sent[0]!) }]);
    },
  );

  test('returns 504 without trying a second name when the handle does not exist', async () => {
    const { answer, sent } = await posted([noResponse, missing]);
    expect([answer.status, sent.map(({ method }) => method)]).toEqual([504, ['PUT', 'GET']]);
    expect(read(answer)).toMatchObject({ handle: nameIn(sent[0]!) });
  });

  test('returns 504 when the handle is unreadable', async () => {
    const { answer, sent } = await posted([noResponse, { status: 500, body: { responseCode: 2 } }]);
    expect([answer.status, sent.length]).toEqual([504, 2]);
  });
});

describe('ePIC v2 POST repeated after a 504', () => {
  const other = { ...URL_VALUE, data: { format: 'string', value: 'https://example.org/other' } };
  const changed: Scripted = { status: 200, body: { responseCode: 1, values: [other, ADMIN_VALUE] } };

  /**
   * Returns the names in the upstream writes of several POSTs. The first POST receives no response and its
   * handle does not exist.
   */
  async function namesOf(script: Scripted[], posts: (V2Question & { path?: string })[]) {
    const { sent } = scriptUpstream(noResponse, missing, ...script);
    const v2 = askV2((await startProxy()).url);
    const statuses: number[] = [];
    for (const { path = '/21.T11998', ...question } of [{}, ...posts]) {
      statuses.push((await v2(path, { method: 'POST', body: [URL_INPUT], ...question })).status);
    }
    const names = sent.filter(({ method }) => method === 'PUT').map(nameIn);
    return { names, statuses };
  }

  test('reuses the first minted name once', async () => {
    const { names, statuses } = await namesOf([created, record, created, record], [{}, {}]);
    expect(statuses).toEqual([504, 201, 201]);
    expect(names[1]).toBe(names[0]);
    expect(names[2]).not.toBe(names[0]);
  });

  test('returns 201 when the first POST succeeded', async () => {
    const { names, statuses } = await namesOf([exists, record, record], [{}]);
    expect([statuses, new Set(names).size]).toEqual([[504, 201], 1]);
  });

  test('uses a different name when the first handle has changed', async () => {
    const { names, statuses } = await namesOf([exists, changed, created, record], [{}]);
    expect(statuses).toEqual([504, 201]);
    expect(names.map((name) => name === names[0])).toEqual([true, true, false]);
  });

  test.each<V2Question & { path?: string }>([
    { as: USER02 },
    { body: [{ ...URL_INPUT, type: 'DESC' }] },
    { path: '/21.T11998?prefix=a-' },
    { headers: { 'Idempotency-Key': 'order-17' } },
  ])('uses a different name for a different request: %j', async (question) => {
    const { names } = await namesOf([created, record], [question]);
    expect(names[1]).not.toBe(names[0]);
  });

  test('reserves the name for the next POST after a second failure', async () => {
    const { names, statuses } = await namesOf(
      [{ status: 401, body: '' }, created, record],
      [{ as: basic('300:21.T11998/USER01', 'wrong') }, {}],
    );
    expect([statuses, new Set(names).size]).toEqual([[504, 401, 201], 1]);
  });
});

describe('ePIC v2 POST with an Idempotency-Key', () => {
  const headers = { 'Idempotency-Key': 'order-17' };

  test('returns the same handle for a repetition, and a different handle for a different caller or key', async () => {
    const { sent } = scriptUpstream(
      created,
      record,
      exists,
      record,
      record,
      created,
      record,
      created,
      record,
    );
    const v2 = askV2((await startProxy()).url);
    const post = (key: string, as = USER01) =>
      v2('/21.T11998', { method: 'POST', body: [URL_INPUT], as, headers: { 'Idempotency-Key': key } });
    const answers = [await post('1'), await post('1'), await post('2'), await post('1', USER02)];
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    const names = answers.map((answer) => (read(answer) as { 'epic-pid': string })['epic-pid']);
    expect(names[0]).toMatch(new RegExp(`^21\\.T11998/${UUID}$`));
    expect(names[1]).toBe(names[0]);
    expect(new Set(names).size).toBe(3);
    expect(sent).toHaveLength(9);
  });

  test('returns 412 for the same key with different values', async () => {
    const body = [{ type: 'URL', parsed_data: 'https://example.org/two' }];
    const { answer } = await posted([exists, record], '/21.T11998', { headers, body });
    expect(answer.status).toBe(412);
  });

  test.each([
    ['the same', { parsed_data: 'hidden' }, 201],
    ['a different', { parsed_data: 'other' }, 412],
  ])('returns for the same key with %s secret key: %j → %i', async (_what, secret, status) => {
    const stored = { status: 200, body: { responseCode: 1, values: [...RECORD, SECRET_VALUE] } };
    const body = [URL_INPUT, { idx: 300, type: 'HS_SECKEY', privs: 'rw--', ...secret }];
    const { answer } = await posted([exists, stored, stored], '/21.T11998', { headers, body });
    expect(answer.status).toBe(status);
  });

  test('returns 201 for the same key when the caller cannot read the stored secret key', async () => {
    const forbidden = { status: 403, body: { responseCode: 400 } };
    const body = [URL_INPUT, { idx: 300, type: 'HS_SECKEY', privs: 'rw--', parsed_data: 'hidden' }];
    const script = [exists, forbidden, record, forbidden, record];
    const { answer } = await posted(script, '/21.T11998', { headers, body });
    expect(answer.status).toBe(201);
  });
});
