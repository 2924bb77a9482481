import { describe, expect, test } from 'vitest';
import { toText } from '../../src/handle/bytes.js';
import type { Found, Outcome } from '../../src/handle/outcome.js';
import { useNock } from '../support/nock.js';
import { mockUpstream, resolve } from './ask.js';

useNock();

const url = { index: 1, type: 'URL', data: { format: 'string', value: 'https://e.org' }, ttl: 300 };
const secret = { index: 9, type: 'HS_SECKEY', data: 's3cret', permissions: '1100', ttl: 86400 };

const asText = (outcome: Outcome): string => toText((outcome as Found).values);

describe('upstream response outcome', () => {
  test('is "found" for a record, with its public values unchanged', async () => {
    const upstream = mockUpstream();
    const written = '{"index":1, "type":"URL","data":{"format":"string","value":"ä/😀"},"ttl":300}';
    upstream.reply(200, `{"responseCode":1,"handle":"21.T1/a","values":[${written}]}`);
    const outcome = await resolve('21.T1/a');
    expect(outcome).toMatchObject({ kind: 'found', ttls: [300] });
    expect(asText(outcome)).toBe(`[${written}]`);
    expect(upstream.sent).toHaveLength(1);
  });

  test('excludes private values sent by the server', async () => {
    const upstream = mockUpstream();
    upstream.reply(200, { responseCode: 1, handle: '21.T1/a', values: [secret, url] });
    const outcome = await resolve('21.T1/a');
    expect(asText(outcome)).toBe(JSON.stringify([url]));
    expect(outcome).toMatchObject({ ttls: [300] });
    expect(upstream.sent).toHaveLength(1);
  });

  test('is empty for a record with private values only', async () => {
    mockUpstream().reply(200, { responseCode: 1, handle: '21.T1/a', values: [secret] });
    expect(await resolve('21.T1/a')).toEqual({ kind: 'empty' });
  });

  test('is empty for "values not found"', async () => {
    const upstream = mockUpstream();
    upstream.reply(200, { responseCode: 200, values: [], handle: '21.T1/a' });
    expect(await resolve('21.T1/a')).toEqual({ kind: 'empty' });
    expect(upstream.sent).toHaveLength(1);
  });

  test('is not-found for a missing handle', async () => {
    const upstream = mockUpstream();
    upstream.reply(404, { responseCode: 100, handle: '21.T1/a' });
    expect(await resolve('21.T1/a')).toEqual({ kind: 'not-found' });
    expect(upstream.sent).toHaveLength(1);
  });

  test('is not-found with the message from an upstream proxy', async () => {
    const message = 'HandleException (SERVICE_NOT_FOUND) Unable to find service for prefix 21.X';
    mockUpstream().reply(404, { responseCode: 100, message, handle: '21.X/a' });
    expect(await resolve('21.X/a')).toEqual({ kind: 'not-found', message });
  });

  test('is refused with the server message for a foreign prefix', async () => {
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

  test('is refused for a referral, without private values', async () => {
    mockUpstream().reply(300, {
      responseCode: 302,
      referralHandle: '0.NA/1',
      values: [url, secret, null, 's3cret'],
      handle: 'a/b',
    });
    expect(await resolve('a/b')).toEqual({
      kind: 'refused',
      status: 300,
      members: { responseCode: 302, referralHandle: '0.NA/1', values: [url] },
      namesHandle: true,
    });
  });

  test('is a failure that includes the server response for an internal server error', async () => {
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

  test('is a failure with Retry-After for a busy server', async () => {
    const upstream = mockUpstream();
    upstream.reply(503, { responseCode: 3 }, { 'content-type': 'application/json', 'retry-after': '7' });
    await expect(resolve('21.T1/a')).rejects.toMatchObject({
      code: 'UPSTREAM_FAILED',
      upstreamAnswer: { status: 503, members: { responseCode: 3 }, namesHandle: false, retryAfter: '7' },
    });
    expect(upstream.sent).toHaveLength(1);
  });
});
