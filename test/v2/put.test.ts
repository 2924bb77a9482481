import { describe, expect, test } from 'vitest';
import { adminValue, recordEtag, toV2 } from '../support/v2-values.js';
import type { Asked } from '../support/ask.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { USER01, type V2Question, askV2, read } from '../support/v2.js';
import { NAME, type Scripted, reply, scriptUpstream, sends } from '../support/v2-upstream.js';
import {
  ADMIN_VALUE,
  RECORD,
  SECRET_VALUE,
  URL_INPUT,
  URL_VALUE,
  withoutStamp,
} from '../support/v2-record.js';

useNock();

const GET = sends('GET', `/${NAME}?auth=true`, USER01);
const GET_PUBLIC = sends('GET', `/${NAME}?auth=true&publicOnly=true`, USER01);
const SENT = [withoutStamp(URL_VALUE), withoutStamp(ADMIN_VALUE)];
const put = (query: string, values: unknown[] = SENT) =>
  sends('PUT', `/${NAME}${query}`, USER01, { handle: NAME, values });

async function answered(script: Scripted[], question: V2Question = {}, path = `/${NAME}`) {
  const { sent } = scriptUpstream(...script);
  const { url } = await startProxy({ UPSTREAM_TIMEOUT: '2s' });
  const answer: Asked = await askV2(url)(path, { method: 'PUT', body: [URL_INPUT], ...question });
  return { answer, sent, url };
}

describe('ePIC v2 PUT of a missing handle', () => {
  test('waits for its write for upstream.writeTimeout, which is longer than that of a read', async () => {
    const { answer } = await answered([reply.missing, { ...reply.created, afterMs: 25_000 }]);
    expect(answer.status).toBe(201);
  });

  test('reads the handle and creates it with overwrite=false', async () => {
    const { answer, sent, url } = await answered([reply.missing, reply.created]);
    expect(sent).toEqual([GET, put('?overwrite=false')]);
    expect(answer.status).toBe(201);
    expect(answer.headers).toMatchObject({
      location: `${url}/api/v2/handles/${NAME}`,
      'cache-control': 'no-store',
    });
    expect(answer.text).toBe(`{"epic-pid":"${NAME}"}`);
  });

  test.each(['https://example.org/one', 'wwwexample'])(
    'accepts the plain string %s in data, as MyCoRe sends it',
    async (data) => {
      const { sent } = await answered([reply.missing, reply.created], {
        body: [{ type: 'URL', data }],
      });
      expect((sent[1]?.body as { values: { data: unknown }[] }).values[0]?.data).toEqual({
        format: 'string',
        value: data,
      });
    },
  );

  test('reads the record again after a concurrent creation', async () => {
    const other = { ...URL_VALUE, data: { format: 'string', value: 'https://example.org/other' } };
    const { answer, sent } = await answered([
      reply.missing,
      reply.exists,
      reply.record([other, ADMIN_VALUE]),
      reply.done,
      reply.record(RECORD),
    ]);
    expect(sent).toEqual([GET, put('?overwrite=false'), GET, put('?overwrite=true'), GET]);
    expect(answer.status).toBe(204);
  });
});

describe('ePIC v2 PUT with If-None-Match: *', () => {
  const createOnly = { headers: { 'If-None-Match': '*' } };

  test('sends one write with overwrite=false, and does not read', async () => {
    const { answer, sent } = await answered([reply.created], createOnly);
    expect(sent).toEqual([put('?overwrite=false')]);
    expect(answer.status).toBe(201);
  });

  test('returns the ETag of the written values', async () => {
    const { answer } = await answered([reply.created], createOnly);
    expect([answer.status, answer.headers.etag]).toEqual([201, recordEtag(RECORD)]);
  });

  test('returns 412 when the handle exists', async () => {
    const { answer, sent } = await answered([reply.exists], createOnly);
    expect(sent).toEqual([put('?overwrite=false')]);
    expect(answer.status).toBe(412);
    expect(read(answer)).toMatchObject({ code: 'PRECONDITION_FAILED', handle: NAME });
  });
});

describe('ePIC v2 PUT with If-Unmodified-Since', () => {
  const date = { 'If-Unmodified-Since': 'Sat, 21 Nov 2099 09:00:00 GMT' };

  test('returns 412 and writes nothing, because a date cannot tell that no value was removed', async () => {
    const { answer, sent } = await answered([reply.record(RECORD)], { headers: date });
    expect(sent.filter(({ method }) => method !== 'GET')).toEqual([]);
    expect([answer.status, read(answer)]).toMatchObject([412, { code: 'PRECONDITION_FAILED' }]);
  });
});

describe('ePIC v2 PUT of an existing handle', () => {
  test('replaces the whole record', async () => {
    const old = { ...URL_VALUE, type: 'DESC' };
    const { answer, sent } = await answered([
      reply.record([old, ADMIN_VALUE]),
      reply.done,
      reply.record(RECORD),
    ]);
    expect(sent).toEqual([GET, put('?overwrite=true'), GET]);
    expect([answer.status, answer.text]).toEqual([204, '']);
    expect(answer.headers).toMatchObject({
      etag: expect.stringMatching(/^"[\w-]{22}"$/) as string,
    });
    expect(answer.headers).not.toHaveProperty('content-length');
  });

  test('returns the ETag of the sent values when the written record is unreadable', async () => {
    const { answer } = await answered([
      reply.record([{ ...URL_VALUE, type: 'DESC' }, ADMIN_VALUE]),
      reply.done,
      { status: 500, body: { responseCode: 2 } },
    ]);
    expect([answer.status, answer.headers.etag]).toEqual([204, recordEtag(RECORD)]);
  });

  test('preserves a secret key', async () => {
    const record = [...RECORD, SECRET_VALUE];
    const { sent } = await answered([reply.record(record), reply.done, reply.record(record)]);
    expect(sent[1]).toEqual(put('?overwrite=true', [...SENT, withoutStamp(SECRET_VALUE)]));
  });

  test('returns 201 after a concurrent deletion', async () => {
    const { answer } = await answered([reply.record(RECORD), reply.created, reply.record(RECORD)]);
    expect(answer.status).toBe(201);
  });

  test('adds, changes and removes values by index when some values are unreadable', async () => {
    const gone = { ...URL_VALUE, index: 7, type: 'GONE' };
    const old = { ...URL_VALUE, data: { format: 'string', value: 'https://example.org/old' } };
    const { answer, sent } = await answered(
      [
        reply.forbidden,
        reply.record([old, ADMIN_VALUE, gone]),
        reply.created,
        reply.done,
        reply.done,
        reply.record(RECORD),
      ],
      { body: [URL_INPUT, { idx: 5, type: 'DESC', parsed_data: 'new' }] },
    );
    const added = { index: 5, type: 'DESC', data: { format: 'string', value: 'new' }, ttl: 86400 };
    expect(sent.slice(0, 5)).toEqual([
      GET,
      GET_PUBLIC,
      put('?index=various&overwrite=false', [added]),
      put('?index=various&overwrite=true', [
        withoutStamp(URL_VALUE),
        ...(sent[3]?.body as { values: unknown[] }).values.slice(1),
      ]),
      sends('DELETE', `/${NAME}?index=7`, USER01),
    ]);
    expect(answer.status).toBe(204);
  });

  test('removes thousands of values by index in requests whose heads a Handle server accepts', async () => {
    const gone = Array.from({ length: 2000 }, (_, at) => ({ ...URL_VALUE, index: 2 ** 31 - 1 - at }));
    const removals = Array.from({ length: 8 }, () => reply.done);
    const { answer, sent } = await answered([
      reply.forbidden,
      reply.record([...RECORD, ...gone]),
      reply.done,
      ...removals,
      reply.record(RECORD),
    ]);
    const deletions = sent.filter(({ method }) => method === 'DELETE');
    const removed = deletions.flatMap(({ target }) => target.match(/\d+(?=&|$)/g) ?? []).map(Number);
    expect(removed).toEqual(gone.map(({ index }) => index));
    // Jetty accepts 8 KiB for the request line and all headers (recording "9000-character request line").
    expect(Math.max(...deletions.map(({ target }) => target.length))).toBeLessThan(5000);
    expect(answer.status).toBe(204);
  });

  test('falls back to a creation after a concurrent deletion during a write by index', async () => {
    const { answer, sent } = await answered([
      reply.forbidden,
      reply.record(RECORD),
      reply.missing,
      reply.missing,
      reply.created,
    ]);
    expect(sent.slice(2)).toEqual([put('?index=various&overwrite=true', SENT), GET, put('?overwrite=false')]);
    expect(answer.status).toBe(201);
  });

  test('never overwrites a hidden value by index', async () => {
    const conflict = {
      status: 409,
      body: { responseCode: 201, message: 'Index conflict for 5', handle: NAME },
    };
    const { answer, sent } = await answered([reply.forbidden, reply.record(RECORD), conflict], {
      body: [URL_INPUT, { idx: 5, type: 'DESC', parsed_data: 'new' }],
    });
    expect(sent).toHaveLength(3);
    expect([answer.status, (read(answer) as { code: string }).code]).toEqual([400, 'V2_INDEX_TAKEN']);
  });

  test.each([
    ['a lockout', [], 'V2_LOCKOUT'],
    [
      'the index of a hidden value before a lockout',
      [{ idx: 300, type: 'DESC', parsed_data: 'new' }],
      'V2_INDEX_TAKEN',
    ],
  ])('names %s', async (_, others, code) => {
    const stranger = adminValue(100, { handle: '21.T11998/USER02', index: 300 });
    const { answer } = await answered([reply.record([...RECORD, SECRET_VALUE])], {
      body: [URL_INPUT, ...toV2([stranger]), ...others],
    });
    expect([answer.status, read(answer)]).toMatchObject([400, { code }]);
  });
});

describe('ePIC v2 PUT with preconditions', () => {
  test.each([{ 'If-Match': '"old"' }, { 'If-Match': '"a", "b"' }, { 'If-None-Match': '"x", W/TAG' }])(
    'writes nothing when they fail: %j',
    async (given) => {
      const tag = recordEtag(RECORD);
      const headers = JSON.parse(JSON.stringify(given).replace('TAG', tag.replaceAll('"', '\\"'))) as object;
      const { answer, sent } = await answered([reply.record(RECORD)], { headers: { ...headers } });
      expect([answer.status, sent]).toEqual([412, [GET]]);
      expect(read(answer)).toMatchObject({ detail: expect.stringContaining(tag) as string });
    },
  );

  test.each([
    ['If-Match', `"x", ${recordEtag(RECORD)}`],
    ['If-Match', '*'],
    ['If-None-Match', '"x"'],
  ])('writes the record when the preconditions pass: %s %s', async (name, value) => {
    const script = [reply.record(RECORD), reply.done, reply.record(RECORD)];
    const { answer, sent } = await answered(script, { headers: { [name]: value } });
    expect([answer.status, sent]).toEqual([204, [GET, put('?overwrite=true'), GET]]);
    expect(answer.headers.etag).toBe(recordEtag(RECORD));
  });

  test('returns 412 for If-Match on a missing handle', async () => {
    const { answer, sent } = await answered([reply.missing], { headers: { 'If-Match': '*' } });
    expect([answer.status, sent]).toEqual([412, [GET]]);
  });
});

describe('ePIC v2 path', () => {
  test.each([
    [`/${NAME}/`, NAME],
    [`/${NAME}/?URL=https://example.org/x`, NAME],
    [`/${NAME}?redirect=no`, NAME],
    ['/21.T11998%2Fabc', NAME],
    ['/21.T11998/a%2Fb/c', '21.T11998/a/b/c'],
    ['/21.T11998/a+b', '21.T11998/a+b'],
    ['/21.T11998/abc%2F', '21.T11998/abc/'],
    ['/21.T11998/%C3%BC%20', '21.T11998/ü '],
  ])('maps %s to the handle %s', async (path, handle) => {
    const { answer, url } = await answered(
      [{ status: 201, body: { responseCode: 1 } }, reply.missing],
      {
        headers: { 'If-None-Match': '*' },
      },
      path,
    );
    expect([answer.status, read(answer)]).toEqual([201, { 'epic-pid': handle }]);
    const { location = '' } = answer.headers;
    expect(location).toBe(`${url}/api/v2/handles${path.replace(/\?.*/, '').replace(/\/$/, '')}`);
  });
});
