// Invalid responses are reported without a retry and without revealing values.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ServiceError } from '../../src/errors.js';
import { useNock } from '../support/nock.js';
import { mockUpstream, resolve } from './ask.js';

useNock();

const JSON_TYPE = { 'content-type': 'application/json' };
const HTML_TYPE = { 'content-type': 'text/html' };

describe('invalid upstream responses', () => {
  test.each([
    {
      what: 'broken JSON',
      status: 200,
      body: '{"responseCode":1,"handle":"21.T1/a","values":[{"s3cret',
      says: 'no JSON',
    },
    { what: 'a JSON array', status: 200, body: '["s3cret"]', says: 'no JSON object' },
    { what: 'null', status: 200, body: 'null', says: 'no JSON object' },
    {
      what: 'an unrelated JSON object',
      status: 200,
      body: '{"error":"s3cret"}',
      says: 'no response code',
    },
    { what: 'no body', status: 200, body: '', says: '0 characters' },
    {
      what: 'a record of a different handle',
      status: 200,
      body: '{"responseCode":1,"handle":"21.T1/b","values":[]}',
      says: 'another handle',
    },
    {
      what: 'a record without a handle',
      status: 200,
      body: '{"responseCode":1,"values":[]}',
      says: 'without its handle',
    },
    {
      what: 'values that are not an array',
      status: 200,
      body: '{"responseCode":1,"handle":"21.T1/a","values":{}}',
      says: 'without a list of values',
    },
    {
      what: 'a value that is not an object',
      status: 200,
      body: '{"responseCode":1,"handle":"21.T1/a","values":["s3cret"]}',
      says: 'something other than values',
    },
    {
      what: 'a value with an invalid ttl',
      status: 200,
      body: '{"responseCode":1,"handle":"21.T1/a","values":[{"index":1,"type":"URL","ttl":{}}]}',
      says: 'ttl',
    },
    {
      what: 'a success with an error status',
      status: 500,
      body: '{"responseCode":1,"handle":"21.T1/a","values":[]}',
      says: 'contradicts',
    },
    { what: 'a not-found with status 200', status: 200, body: '{"responseCode":100}', says: 'contradicts' },
    { what: 'a not-found with status 500', status: 500, body: '{"responseCode":100}', says: 'contradicts' },
    { what: 'a not-found with status 400', status: 400, body: '{"responseCode":100}', says: 'contradicts' },
    { what: 'an error with status 200', status: 200, body: '{"responseCode":2}', says: 'contradicts' },
    {
      what: 'a not-found for a different handle',
      status: 404,
      body: '{"responseCode":100,"handle":"21.T1/b"}',
      says: 'another handle',
    },
  ])('include $what', async ({ status, body, says }) => {
    const upstream = mockUpstream();
    upstream.reply(status, body, JSON_TYPE);
    const error = await resolve('21.T1/a').catch((thrown: unknown) => thrown as Error & { code: string });
    expect(error).toMatchObject({ code: 'UPSTREAM_INVALID_RESPONSE', status: 502 });
    const { message, diagnosis } = error as ServiceError;
    expect(message).toBe('Invalid response from the Handle server');
    expect(diagnosis?.cause).toContain(says);
    expect(diagnosis?.cause).toContain(`HTTP ${status}`);
    expect(diagnosis?.cause).not.toContain('s3cret');
    expect(upstream.sent).toHaveLength(1);
  });

  test.each([404, 300, 400, 429, 500])(
    'include a refusal above 64 KiB, which is not parsed: %i',
    async (status) => {
      const refusal = { responseCode: status === 404 ? 100 : 2, message: 'x'.repeat(65_536) };
      mockUpstream().reply(status, refusal);
      const parse = vi.spyOn(JSON, 'parse');
      onTestFinished(() => {
        parse.mockRestore();
      });
      const error = await resolve('21.T1/a').catch((thrown: unknown) => thrown as ServiceError);
      expect(error).toMatchObject({ code: status === 429 ? 'UPSTREAM_BUSY' : 'UPSTREAM_INVALID_RESPONSE' });
      expect((error as ServiceError).upstreamAnswer).toBeUndefined();
      expect(Math.max(0, ...parse.mock.calls.map(([text]) => text.length))).toBeLessThan(65_536);
    },
  );

  test('do not include a refusal of almost 64 KiB', async () => {
    const refusal = { responseCode: 301, message: 'x'.repeat(65_000) };
    mockUpstream().reply(400, refusal);
    expect(await resolve('21.T1/a')).toMatchObject({ kind: 'refused', members: refusal });
  });

  test('include an HTML page, whose visible text appears in the diagnosis', async () => {
    const upstream = mockUpstream();
    const page = `<html><head><title>502 Bad Gateway</title></head>\n<body>${'nginx '.repeat(100)}</body></html>`;
    upstream.reply(502, page, HTML_TYPE);
    await expect(resolve('21.T1/a')).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      diagnosis: {
        cause: expect.stringMatching(
          /HTTP 502, text\/html, \d+ characters, "502 Bad Gateway nginx .{1,58}"\)$/,
        ) as string,
      },
    });
    expect(upstream.sent).toHaveLength(1);
  });

  test('include a redirect, which is not followed', async () => {
    const upstream = mockUpstream();
    upstream.reply(301, '', { location: 'https://elsewhere.test/' });
    await expect(resolve('21.T1/a')).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      diagnosis: { remedy: expect.stringContaining('redirects are not followed') as string },
    });
    expect(upstream.sent).toHaveLength(1);
  });

  test('do not include a handle in different case when the server is case-insensitive', async () => {
    const body = { responseCode: 200, handle: '21.t1/A', values: [] };
    mockUpstream().reply(200, body);
    expect(await resolve('21.T1/a')).toEqual({ kind: 'empty' });
    mockUpstream().reply(200, body);
    await expect(resolve('21.T1/a', { caseSensitive: true })).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
    });
  });
});
