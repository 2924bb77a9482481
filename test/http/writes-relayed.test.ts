import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH } from '../support/upstream.js';
import { JSON_HEADERS, type WriteAnswer, jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const CHALLENGES = [
  'WWW-Authenticate',
  'Basic realm="handle"',
  'WWW-Authenticate',
  'Handle sessionId="1x", nonce="bm9uY2U="',
];

const answers: [what: string, answer: WriteAnswer][] = [
  ['200', jsonAnswer(200, { responseCode: 1 })],
  ['201', jsonAnswer(201, { responseCode: 1 })],
  ['400', jsonAnswer(400, { responseCode: 202, message: 'Value indexes must be positive' })],
  ['401 without a body', { status: 401, rawHeaders: [...CHALLENGES, 'Content-Length', '0'] }],
  [
    '401 with JSON',
    { ...jsonAnswer(401, { responseCode: 402 }), rawHeaders: [...CHALLENGES, ...JSON_HEADERS] },
  ],
  ['403', jsonAnswer(403, { responseCode: 400 })],
  ['404', jsonAnswer(404, { responseCode: 100 })],
  ['409, the handle exists', jsonAnswer(409, { responseCode: 101 })],
  ['409, the value exists', jsonAnswer(409, { responseCode: 201, message: 'Index conflict for 1' })],
  ['500', jsonAnswer(500, { responseCode: 2, message: 'Unexpected server error' })],
  ['503', jsonAnswer(503, { responseCode: 3, message: 'Server too busy' })],
  ['a page instead of JSON', { status: 200, body: '<h1>ok</h1>', rawHeaders: ['Content-Type', 'text/html'] }],
  [
    'JSONP',
    { status: 200, body: 'f({"responseCode":1});', rawHeaders: ['Content-Type', 'application/javascript'] },
  ],
];

/** Returns the values of a repeatable header. */
function valuesOf(rawHeaders: string[], name: string): string[] {
  return rawHeaders.filter((_value, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
}

describe('response to a write', () => {
  describe('unchanged relay', () => {
    test.each(answers)('preserves %s', async (_what, answer) => {
      const sent = mockWrites(answer);
      const proxy = await startProxy({ DELETION_HANDLES: 'true' });
      for (const method of ['PUT', 'DELETE', 'POST']) {
        const { status, rawHeaders, text } = await proxy.ask(PATH, { method, body: '[]' });
        expect([status, text]).toEqual([answer.status, answer.body ?? '']);
        for (const name of ['content-type', 'www-authenticate']) {
          expect(valuesOf(rawHeaders, name)).toEqual(valuesOf(answer.rawHeaders ?? [], name));
        }
      }
      expect(sent.map(({ method }) => method)).toEqual(['PUT', 'DELETE', 'POST']);
    });
  });

  test('preserves every value of a header that is repeated in other spellings', async () => {
    const rawHeaders = ['Set-Cookie', 'a=1', 'set-cookie', 'b=2', 'SET-COOKIE', 'c=3'];
    const [, basic, , handle] = CHALLENGES as [string, string, string, string];
    mockWrites({
      status: 401,
      rawHeaders: [...rawHeaders, 'WWW-Authenticate', basic, 'www-authenticate', handle],
    });
    const answer = await (await startProxy()).ask(PATH, { method: 'PUT', body: '[]' });
    expect(valuesOf(answer.rawHeaders, 'set-cookie')).toEqual(['a=1', 'b=2', 'c=3']);
    expect(valuesOf(answer.rawHeaders, 'www-authenticate')).toEqual([basic, handle]);
  });

  test.each([
    [429, '17'],
    // A gateway in between may have aborted while the server executes the write.
    [502, undefined],
    [503, undefined],
  ])('with %i and Retry-After: 17 is relayed with the Retry-After %s', async (status, expected) => {
    mockWrites({ status, body: 'later', rawHeaders: ['retry-after', '17', 'X-Gateway', 'yes'] });
    const proxy = await startProxy({ DELETION_HANDLES: 'true' });
    for (const method of ['PUT', 'DELETE']) {
      const answer = await proxy.ask(PATH, { method, body: '[]' });
      expect([answer.status, answer.text, answer.headers['x-gateway']]).toEqual([status, 'later', 'yes']);
      expect(answer.headers['retry-after']).toBe(expected);
    }
  });

  describe('response length', () => {
    test.each([
      [403, PATH],
      [404, PATH],
      [201, `${PATH}?mintNewSuffix=true`],
    ])('is unlimited for a %i to %s with a login over plain HTTP', async (status, target) => {
      const body = `<h1>Not for you</h1>${'x'.repeat(3 * 1024 * 1024)}.`;
      mockWrites({ status, body, rawHeaders: ['Content-Type', 'text/html'] });
      const proxy = await startProxy();
      const headers = { Authorization: 'Basic eDp5' };
      const answer = await proxy.ask(target, { method: 'PUT', body: '[]', headers });
      expect(answer.status).toBe(status);
      expect(answer.text === body).toBe(true);
    });
  });

  test('carries Cache-Control: no-store', async () => {
    mockWrites({
      ...jsonAnswer(200, { responseCode: 1 }),
      rawHeaders: ['Cache-Control', 'public, max-age=60'],
    });
    const proxy = await startProxy();
    const { headers } = await proxy.ask(PATH, { method: 'PUT', body: '[]' });
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['cache-status']).toBe('handle-resolver-proxy; fwd=bypass');
    expect(headers.vary).toBe('Accept-Encoding, Authorization, Origin');
  });

  test.each(['ECONNRESET', 'EPIPE'])('is 502 when the connection breaks (%s)', async (error) => {
    const sent = mockWrites({ status: 0, error });
    const proxy = await startProxy();
    const { status, text, headers } = await proxy.ask(PATH, { method: 'PUT', body: '[]' });
    expect(status).toBe(502);
    expect(JSON.parse(text)).toMatchObject({ responseCode: 2, handle: HANDLE });
    expect(headers['cache-control']).toBe('no-store');
    expect(sent, 'a write is never sent twice').toHaveLength(1);
  });

  test('with 204 has no Content-Length, which HTTP forbids there', async () => {
    mockWrites({ status: 204, rawHeaders: ['Content-Length', '0'] });
    const answer = await (await startProxy()).ask(PATH, { method: 'PUT', body: '[]' });
    expect([answer.status, answer.headers['content-length']]).toEqual([204, undefined]);
  });

  test('is readable by scripts (CORS), including its challenges', async () => {
    const credentials = ['Access-Control-Allow-Credentials', 'true'];
    mockWrites({ status: 401, rawHeaders: [...CHALLENGES, ...credentials] });
    const proxy = await startProxy();
    const { headers } = await proxy.ask(PATH, { method: 'PUT', headers: { Origin: 'https://app.example' } });
    expect(headers['access-control-allow-origin']).toBe('https://app.example');
    expect(headers['access-control-allow-credentials'], 'any origin may read').toBeUndefined();
    expect(headers['access-control-expose-headers']).toContain('Www-Authenticate');
  });
});
