// Every route serves malformed values or reports an invalid response, and never returns a 500.
import { describe, expect, test } from 'vitest';
import { basic } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { useProxy } from '../support/proxy.js';
import { HANDLE, PATH, VALUES, mockUpstream, recordOf } from '../support/upstream.js';

useNock();
const proxy = useProxy({
  V2_ANONYMOUS_READ: 'true',
  ...fixed({ upstream: { breaker: { failures: 10_000 } } }),
  UPSTREAM_MAX_RECORD_SIZE: '16MiB',
});

const LOGIN = { Authorization: basic('300:21.T1/USER', 'x') };
const ROUTES: [path: string, headers?: Record<string, string>][] = [
  [PATH],
  [`${PATH}?pretty&callback=f`],
  [`${PATH}?index=1&type=URL.`],
  [`/${HANDLE}`],
  [`/${HANDLE}?noredirect`],
  [`/${HANDLE}?action=showurls`],
  [`/api/v2/handles/${HANDLE}`],
  [`/api/v2/handles/${HANDLE}`, LOGIN],
];

const odd = (members: Record<string, unknown>): unknown => ({ ...(VALUES[0] as object), ...members });

async function statusesOf(values: unknown[], routes = ROUTES): Promise<number[]> {
  mockUpstream(recordOf(values));
  const statuses = [];
  for (const [path, headers = {}] of routes) {
    const { status, text } = await proxy.ask(path, { headers });
    expect(text, path).not.toContain('Unexpected error');
    statuses.push(status);
  }
  return statuses;
}

const SHOWN = [200, 200, 200, 302, 200, 200, 200, 200];
const BAD = ROUTES.map(() => 502);

describe('record with unusual values', () => {
  describe('value with one malformed member', () => {
    test.each<[string, unknown]>([
      ['references that are not a list', odd({ references: { handle: 'a/b', index: 1 } })],
      ['references with invalid members', odd({ references: [null, 7, {}, { handle: {}, index: [] }, []] })],
      ['a numeric timestamp', odd({ timestamp: 7 })],
      ['a timestamp that cannot be converted to a string', odd({ timestamp: { toString: 1, valueOf: 2 } })],
      ['an invalid timestamp', odd({ timestamp: '2026-99-99' })],
      ['a negative index', odd({ index: -1 })],
      ['a huge index', odd({ index: 2 ** 53 })],
      ['missing permissions', odd({ permissions: undefined })],
      ['a type with control characters', odd({ type: 'URL.\u0000\r\n\u001b[2J\ud800' })],
      ['a negative TTL', odd({ ttl: -1 })],
      ['a huge TTL', odd({ ttl: 1e300 })],
      ['an out-of-range date', odd({ ttl: '+275760-09-13T00:00:00.001Z' })],
    ])('does not prevent a response: %s', async (_what, value) => {
      expect(await statusesOf([value])).toEqual(SHOWN);
    });
  });

  describe('malformed second value', () => {
    test.each<[string, Record<string, unknown>]>([
      ['data that is a list', { data: [{}] }],
      ['data with an unknown format', { data: { format: {}, value: {} } }],
      ['data without a value', { data: { format: 'string' } }],
      ['administrators without members', { data: { format: 'admin', value: null } }],
      [
        'a list with invalid members',
        { data: { format: 'vlist', value: [{ handle: 'a/b', index: 1, permissions: {} }] } },
      ],
      ['a list of null', { data: { format: 'vlist', value: [null] } }],
      ['a site without servers', { data: { format: 'site', value: { servers: 7 } } }],
      ['a key of an unknown kind', { data: { format: 'key', value: { kty: 'constructor', n: {} } } }],
      [
        'a key with a billion-byte number',
        { data: { format: 'key', value: { kty: 'RSA', n: { length: 1e9 } } } },
      ],
      ['a format named like an Object.prototype member', { data: { format: 'constructor', value: 'x' } }],
      ['a format named like an Object.prototype method', { data: { format: 'toString', value: 'x' } }],
      ['data that cannot be converted to a string', { data: { format: 'hex', value: { toString: 1 } } }],
    ])('does not prevent a response: %s', async (_what, members) => {
      expect(await statusesOf([VALUES[0], odd({ index: 2, ...members })])).toEqual(SHOWN);
    });

    // The caller may write back a record read with credentials, so all values must be present.
    test.each<[string, unknown]>([
      ['no data', undefined],
      ['null data', null],
      ['numeric data', 7],
    ])('is rejected only for a read with credentials: %s', async (_what, data) => {
      expect(await statusesOf([VALUES[0], odd({ index: 2, data })])).toEqual([...SHOWN.slice(0, -1), 502]);
    });
  });

  describe('invalid upstream response', () => {
    test.each<[string, Record<string, unknown>]>([
      ['a fractional index', { index: 1.5 }],
      ['no index', { index: undefined }],
      ['a type that is not a string', { type: {} }],
      ['permissions that are not a string', { permissions: 1110 }],
      ['a TTL that is an object', { ttl: {} }],
      ['a TTL that is true', { ttl: true }],
    ])('causes a 502 on every route for %s', async (_what, members) => {
      expect(await statusesOf([VALUES[0], odd(members)])).toEqual(BAD);
    });
  });

  test.each([
    [32_000, 200],
    [33_000, 502],
  ])('with %i values causes a %i', async (count, status) => {
    const values = Array.from({ length: count }, (_, at) => ({ index: at + 1, type: 'X', data: {} }));
    expect(await statusesOf(values, [[PATH], [`/api/v2/handles/${HANDLE}`]])).toEqual([status, status]);
  });
});
