// Outcome of each response of the Handle server, without a retry.
import { describe, expect, test } from 'vitest';
import { toText } from '../../src/handle/bytes.js';
import type { Found, Outcome } from '../../src/handle/outcome.js';
import { useNock } from '../support/nock.js';
import { mockUpstream, resolve } from './ask.js';

useNock();

const url = { index: 1, type: 'URL', data: { format: 'string', value: 'https://e.org' }, ttl: 300 };
const secret = { index: 9, type: 'HS_SECKEY', data: 's3cret', permissions: '1100', ttl: 86400 };

const asText = (outcome: Outcome): string => toText((outcome as Found).values);

describe('outcome of an upstream response', () => {
  test('a record is found, with its public values unchanged', async () => {
    const upstream = mockUpstream();
    const written = '{"index":1, "type":"URL","data":{"format":"string","value":"ä/😀"},"ttl":300}';
    upstream.reply(200, `{"responseCode":1,"handle":"21.T1/a","values":[${written}]}`);
    const outcome = await resolve('21.T1/a');
    expect(outcome).toMatchObject({ kind: 'found', ttls: [300] });
    expect(asText(outcome)).toBe(`[${written}]`);
    expect(upstream.sent).toHaveLength(1);
  });

  test('private values are dropped even when the server sends them', async () => {
    const upstream = mockUpstream();
    upstream.reply(200, { responseCode: 1, handle: '21.T1/a', values: [secret, url] });
    const outcome = await resolve('21.T1/a');
    expect(asText(outcome)).toBe(JSON.stringify([url]));
    expect(outcome).toMatchObject({ ttls: [300] });
    expect(upstream.sent).toHaveLength(1);
  });

  test('a record with private values only is empty', async () => {
    mockUpstream().reply(200, { responseCode: 1, handle: '21.T1/a', values: [secret] });
    expect(await resolve('21.T1/a')).toEqual({ kind: 'empty' });
  });

  test('values not found is empty', async () => {
    const upstream = mockUpstream();
    upstream.reply(200, { responseCode: 200, values: [], handle: '21.T1/a' });
    expect(await resolve('21.T1/a')).toEqual({ kind: 'empty' });
    expect(upstream.sent).toHaveLength(1);
  });

  test('a missing handle is not found', async () => {
    const upstream = mockUpstream();
    upstream.reply(404, { responseCode: 100, handle: '21.T1/a' });
    expect(await resolve('21.T1/a')).toEqual({ kind: 'not-found' });
    expect(upstream.sent).toHaveLength(1);
  });

  test('a not-found response of a proxy keeps its message', async () => {
    const message = 'HandleException (SERVICE_NOT_FOUND) Unable to find service for prefix 21.X';
    mockUpstream().reply(404, { responseCode: 100, message, handle: '21.X/a' });
    expect(await resolve('21.X/a')).toEqual({ kind: 'not-found', message });
  });

  test('a foreign prefix is refused with the message of the server', async () => {
    const upstream = mockUpstream();
    upstream.reply(400, { responseCode: 301, message: "That prefix doesn't live here", handle: '99.X/a' });
    expect(await resolve('99.X/a')).toEqual({
      kind: 'refused',
      status: 400,
      members: { responseCode: 301, message: "That prefix doesn't live here" },
      namesHandle: true,
    });
    expect(upstream.sent).toHaveLength(1);
  });

  test('a referral is refused, and its private values are dropped', async () => {
    mockUpstream().reply(300, {
      responseCode: 302,
      referralHandle: '0.NA/1',
      values: [url, secret],
      handle: 'a/b',
    });
    expect(await resolve('a/b')).toEqual({
      kind: 'refused',
      status: 300,
      members: { responseCode: 302, referralHandle: '0.NA/1', values: [url] },
      namesHandle: true,
    });
  });

  test('an internal error of the server is a failure that carries its response', async () => {
    const upstream = mockUpstream();
    upstream.reply(500, { responseCode: 2, message: 'Internal Error', handle: '21.T1/a' });
    await expect(resolve('21.T1/a')).rejects.toMatchObject({
      code: 'UPSTREAM_FAILED',
      status: 502,
      upstreamAnswer: {
        status: 500,
        members: { responseCode: 2, message: 'Internal Error' },
        namesHandle: true,
      },
    });
    expect(upstream.sent).toHaveLength(1);
  });

  test('a busy server is a failure that carries Retry-After', async () => {
    const upstream = mockUpstream();
    upstream.reply(503, { responseCode: 3 }, { 'content-type': 'application/json', 'retry-after': '7' });
    await expect(resolve('21.T1/a')).rejects.toMatchObject({
      code: 'UPSTREAM_FAILED',
      upstreamAnswer: { status: 503, members: { responseCode: 3 }, namesHandle: false, retryAfter: '7' },
    });
    expect(upstream.sent).toHaveLength(1);
  });
});
