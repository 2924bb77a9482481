// The record that a conditional write depends on may be empty, or hidden by the Handle server.
import { assert, describe, expect, onTestFinished, test, vi } from 'vitest';
import { TimeSlicer } from '../../src/time-slicer.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import {
  type Answer,
  HANDLE,
  PATH,
  mockUpstream,
  notFound,
  recordOf,
  urlValue,
} from '../support/upstream.js';
import { type Sent, mockWrites } from '../support/writes.js';
import type { Asked } from '../support/ask.js';

useNock();

const EMPTY: Answer = { status: 200, body: { responseCode: 200, handle: HANDLE } };

const CASE = { UPSTREAM_CASE_SENSITIVE: 'true' };
const SMALL = { UPSTREAM_MAX_RECORD_SIZE: '1KiB' };

async function putIf(
  read: Answer,
  condition: Record<string, string>,
  path = PATH,
  env: Record<string, string> = {},
): Promise<{ answer: Asked; sent: Sent[]; proxy: Proxy; targets: string[] }> {
  const { targets } = mockUpstream(read);
  const sent = mockWrites();
  const proxy = await startProxy(env);
  const headers = { Authorization: 'Basic eDp5', 'Content-Type': 'application/json', ...condition };
  return { answer: await proxy.ask(path, { method: 'PUT', headers, body: '[]' }), sent, proxy, targets };
}

describe('conditional write (If-Match)', () => {
  test.each<[string, Answer, number, object]>([
    [
      'a foreign prefix',
      { status: 404, body: { responseCode: 301, handle: HANDLE } },
      404,
      { responseCode: 301, handle: HANDLE },
    ],
    [
      'an upstream message',
      { status: 400, body: { responseCode: 2, message: 'no' } },
      400,
      { responseCode: 2, message: 'no' },
    ],
    ['a wrong login', { status: 401, body: {} }, 401, { responseCode: 403 }],
    [
      '200 with an error code',
      { status: 200, body: { responseCode: 2, handle: HANDLE } },
      502,
      { responseCode: 2, handle: HANDLE },
    ],
    [
      'a refusal with the code of an empty record',
      { status: 404, body: { responseCode: 200, handle: HANDLE } },
      404,
      { responseCode: 200, handle: HANDLE },
    ],
    ['a record with 203', { ...recordOf(), status: 203 }, 502, { responseCode: 2, handle: HANDLE }],
    ['an empty record with 206', { ...EMPTY, status: 206 }, 502, { responseCode: 2, handle: HANDLE }],
  ])(
    'returns an error and writes nothing when the read results in %s',
    async (_what, read, status, members) => {
      const { answer, sent } = await putIf(read, { 'If-Match': '*' });
      expect(answer.status).toBe(status);
      expect(JSON.parse(answer.text)).toMatchObject(members);
      expect('handle' in (JSON.parse(answer.text) as object)).toBe('handle' in members);
      expect(sent).toEqual([]);
    },
  );

  test('relays the challenge and Retry-After from a server that denies access to the record', async () => {
    const headers = { 'WWW-Authenticate': 'Basic realm="handle"', 'Retry-After': '7' };
    const { answer } = await putIf(
      { status: 401, body: { responseCode: 402 }, headers },
      { 'If-Match': '*' },
    );
    expect(answer.headers).toMatchObject({ 'www-authenticate': 'Basic realm="handle"', 'retry-after': '7' });
  });

  test('relays a refusal that has no challenge or Retry-After', async () => {
    const { answer } = await putIf({ status: 403, body: { responseCode: 401 } }, { 'If-Match': '*' });
    expect(answer.status).toBe(403);
    expect([answer.headers['www-authenticate'], answer.headers['retry-after']]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test('has its condition checked in one job, because a second would wait behind the records of other writes', async () => {
    const run = vi.spyOn(TimeSlicer.prototype, 'run');
    onTestFinished(() => {
      run.mockRestore();
    });
    const description = { format: 'string', value: 'text '.repeat(100) };
    const values = Array.from({ length: 100 }, (_, at) => ({
      index: at + 1,
      type: 'DESC',
      data: description,
    }));
    const { answer } = await putIf(recordOf(values), { 'If-Match': '"other"' }, `${PATH}?index=1`);
    expect(answer.status).toBe(412);
    expect(run.mock.calls.filter(([, { isHolding }]) => isHolding === true)).toHaveLength(1);
  });

  test('treats a record without values as existing, and accepts its ETag from a GET', async () => {
    const { answer, sent, proxy } = await putIf(EMPTY, { 'If-Match': '*' });
    expect(answer.status).toBe(200);
    const tag = (await proxy.ask(PATH)).headers.etag;
    assert(tag);
    const headers = { Authorization: 'Basic eDp5', 'If-Match': tag };
    expect((await proxy.ask(PATH, { method: 'PUT', headers, body: '[]' })).status).toBe(200);
    const other = { ...headers, 'If-Match': '"other"' };
    expect((await proxy.ask(PATH, { method: 'PUT', headers: other, body: '[]' })).status).toBe(412);
    expect(sent).toHaveLength(2);
  });

  test.each<[string, Answer, Record<string, string>]>([
    ['has a different handle, on a case-sensitive server', recordOf(undefined, HANDLE.toUpperCase()), CASE],
    ['is longer than upstream.maxRecordSize', recordOf([urlValue('x'.repeat(2000))]), SMALL],
  ])('is not sent if the record %s', async (_what, read, env) => {
    const { answer, sent } = await putIf(read, { 'If-Match': '*' }, PATH, env);
    expect([answer.status, sent]).toEqual([502, []]);
  });

  test('treats a value of an empty record as missing', async () => {
    const { answer, sent } = await putIf(EMPTY, { 'If-Match': '*' }, `${PATH}?index=1`);
    expect(answer.status).toBe(412);
    expect(sent).toEqual([]);
  });

  test.each<[string, Answer]>([
    ['the record has changed', recordOf()],
    ['the record does not exist', notFound()],
  ])('returns 412 with the reason that %s', async (reason, read) => {
    const { answer } = await putIf(read, { 'If-Match': '"other"' });
    expect(answer.status).toBe(412);
    expect(answer.text).toContain(reason);
  });

  test.each([
    ['W/"other"', 'turn off compression in the web server in front'],
    ['"other", W/"x"', 'turn off compression in the web server in front'],
    ['"W/"', 'the record has changed'],
  ])('returns 412 with the reason of a weak ETag: %s', async (tag, reason) => {
    const { answer } = await putIf(recordOf(), { 'If-Match': tag });
    expect([answer.status, answer.text]).toEqual([412, expect.stringContaining(reason)]);
  });

  test.each([PATH, `${PATH}?pretty`])(
    'is not sent if the ETag of GET %s is in If-None-Match',
    async (path) => {
      mockUpstream();
      const sent = mockWrites();
      const proxy = await startProxy();
      const tag = (await proxy.ask(path)).headers.etag;
      assert(tag);
      const headers = { Authorization: 'Basic eDp5', 'If-None-Match': tag };
      expect((await proxy.ask(PATH, { method: 'PUT', headers, body: '[]' })).status).toBe(412);
      expect(sent).toEqual([]);
    },
  );

  test('compares the ETag with that of an authoritative read, because a secondary may lag', async () => {
    const { targets } = await putIf(recordOf(), { 'If-Match': '*' });
    expect(targets).toEqual([expect.stringMatching(/[?&]auth=true(&|$)/)]);
  });
});
