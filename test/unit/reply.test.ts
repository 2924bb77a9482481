// Parses every recorded reply of a real server, and edge cases.
import { readFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { toText } from '../../src/handle/bytes.js';
import { parseHandle } from '../../src/handle/handle.js';
import type { Outcome } from '../../src/handle/outcome.js';
import { ServiceError } from '../../src/errors.js';
import { runToEnd } from '../../src/time-slicer.js';
import { readAnswer, readOutcome } from '../../src/upstream/reply.js';

interface Recording {
  name: string;
  request: { method: string; path: string; headers: [string, string][] };
  response: { status: number; headers: [string, string][]; body?: string; html?: boolean } | null;
}

const file = new URL('../fixtures/handle-server.json', import.meta.url);
const recordings = JSON.parse(readFileSync(file, 'utf8')) as Recording[];

/** Recorded requests like those of the upstream client: anonymous, ASCII path, no query. */
const ordinary = recordings.filter(
  ({ request }) =>
    request.method === 'GET' &&
    /^\/api\/handles\/[!-~]+$/.test(request.path) &&
    !request.path.includes('?') &&
    !request.headers.some(([name]) => name.toLowerCase() === 'authorization'),
);

const read = (status: number, body: string, handle = '21.T1/a'): Outcome =>
  runToEnd(readOutcome({ status, body, handle, headers: {}, caseSensitive: false }));

describe('Handle server reply', () => {
  test('is parsed for every recorded handle request', () => {
    const kinds = new Map<string, number>();
    for (const { request, response } of ordinary) {
      const parsed = parseHandle(request.path.slice('/api/handles/'.length));
      if (!parsed.ok || response?.body === undefined || response.html) continue;
      const outcome = read(response.status, response.body, parsed.handle);
      kinds.set(outcome.kind, (kinds.get(outcome.kind) ?? 0) + 1);
      if (outcome.kind === 'found')
        expect(response.body).toContain(toText(outcome.values).slice(1, -1).slice(0, 40));
    }
    expect([...kinds.keys()].sort()).toEqual(['empty', 'found', 'not-found', 'refused']);
    expect(kinds.get('found')).toBeGreaterThan(20);
  });

  test('has compact values even when the record is pretty-printed', () => {
    const values = [{ index: 1, type: 'URL', data: { format: 'string', value: 'x' }, ttl: 1 }];
    const body = JSON.stringify({ responseCode: 1, handle: '21.T1/a', values }, null, 2);
    const outcome = read(200, body);
    expect(outcome.kind === 'found' && toText(outcome.values)).toBe(JSON.stringify(values));
  });

  describe('values array', () => {
    const open = '{"index":1,"type":"URL","data":{"format":"string","value":"[1, 2]"},"ttl":1}';
    const closed = '{"index":2,"type":"X","permissions":"1100"}';
    test.each([
      ['compact', `[${open},${open}]`, `[${open},${open}]`],
      ['with space between its values', `[ ${open} ,${open}]`, `[${open},${open}]`],
      ['with a private value', `[${closed},${open}]`, `[${open}]`],
      ['with a value on two lines', `[${open},\n${open.replace(',', ',\n')}]`, `[${open},${open}]`],
      ['empty', '[]', undefined],
    ])('is reduced to its public values: %s', (_how, written, kept) => {
      const outcome = read(200, `{"responseCode":1,"handle":"21.T1/a","values":${written}}`);
      const { values, parsed } = outcome.kind === 'found' ? outcome : {};
      expect(values).toBe(kept);
      expect(parsed).toEqual(kept === undefined ? undefined : JSON.parse(kept));
    });
  });

  test('has the Handle server default TTL for a value without ttl', () => {
    const outcome = read(200, '{"responseCode":1,"handle":"21.T1/a","values":[{"index":1,"type":"URL"}]}');
    expect(outcome).toMatchObject({ ttls: [86_400] });
  });

  test('of a long record is parsed in a step of the time slicer after the step in which it is checked', () => {
    const values = Array.from({ length: 1000 }, (_, at) => ({ index: at + 1, type: 'URL', ttl: 1 }));
    const body = JSON.stringify({ responseCode: 1, handle: '21.T1/a', values });
    const parse = vi.spyOn(JSON, 'parse');
    const requested = { handle: '21.T1/a', caseSensitive: false };
    const response = { status: 200, body, headers: {} };
    for (const reading of [readOutcome({ ...response, ...requested }), readAnswer(response, requested)]) {
      parse.mockClear();
      reading.next();
      expect(parse).not.toHaveBeenCalled();
      runToEnd<unknown>(reading);
      expect(parse).toHaveBeenCalledWith(body);
    }
  });

  test('may have its members in any order', () => {
    const outcome = read(
      200,
      '{"values":[{"index":1,"type":"URL","ttl":5}],"handle":"21.T1/a","responseCode":1}',
    );
    expect(outcome).toMatchObject({ kind: 'found', ttls: [5] });
  });

  test('is an error response for "values not found" with an error status', () => {
    expect(read(400, '{"responseCode":200,"handle":"21.T1/a"}')).toMatchObject({
      kind: 'refused',
      status: 400,
    });
  });

  function causeOf(work: () => unknown): string | undefined {
    try {
      work();
    } catch (error) {
      return error instanceof ServiceError ? error.diagnosis?.cause : undefined;
    }
    return undefined;
  }

  test('is invalid when the response code is not an integer', () => {
    expect(causeOf(() => read(404, '{"responseCode":"100"}'))).toContain('no response code');
  });

  test('is a failure for an unsupported operation', () => {
    expect(() => read(501, '{"responseCode":5}')).toThrow('response code 5 (HTTP 501)');
  });

  test('is invalid when nested too deeply', () => {
    expect(causeOf(() => read(200, '['.repeat(200_000)))).toContain('JSON nested deeper than 64 levels');
  });
});
