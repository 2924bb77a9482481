import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { type MockUpstream, PATH, mockUpstream, notFound, recordOf, urlValue } from '../support/upstream.js';
import { type WriteAnswer, jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const old = recordOf([urlValue('https://example.org/old')]);
const fresh = recordOf([urlValue('https://example.org/new')]);
const broken = { status: 500, body: '' };

const success: [what: string, answer: WriteAnswer][] = [
  ['404', jsonAnswer(404, { responseCode: 100 })],
  ['404 without JSON', { status: 404, body: '<html></html>' }],
  ['200', jsonAnswer(200, { responseCode: 1 })],
  ['201', jsonAnswer(201, { responseCode: 1 })],
  ['204', { status: 204 }],
];
const refusals: [what: string, answer: WriteAnswer][] = [
  ['400', jsonAnswer(400, { responseCode: 202 })],
  ['401 without a body', { status: 401, rawHeaders: ['WWW-Authenticate', 'Basic realm="handle"'] }],
  ['401 with JSON', jsonAnswer(401, { responseCode: 402 })],
  ['403', jsonAnswer(403, { responseCode: 400 })],
  ['404 with a different response code', jsonAnswer(404, { responseCode: 301 })],
  ['501', { status: 501 }],
  ['409, the handle exists', jsonAnswer(409, { responseCode: 101 })],
  ['409, the value exists', jsonAnswer(409, { responseCode: 201 })],
  ['a redirect', { status: 302, rawHeaders: ['Location', 'https://elsewhere.test/'] }],
];
const unknown: [what: string, answer: WriteAnswer][] = [
  ['500', jsonAnswer(500, { responseCode: 2 })],
  ['503', jsonAnswer(503, { responseCode: 3 })],
  ['a connection reset', { status: 0, error: 'ECONNRESET' }],
  ['a broken pipe', { status: 0, error: 'EPIPE' }],
];
const neverSent: [what: string, answer: WriteAnswer][] = [
  ['a refused connection', { status: 0, error: 'ECONNREFUSED' }],
  ['an unknown host', { status: 0, error: 'ENOTFOUND' }],
];

interface Written {
  upstream: MockUpstream;
  proxy: Proxy;
}

/** Caches several representations of a record, then sends a write that returns `answer`. */
async function writeAfterRead(answer: WriteAnswer, method: string): Promise<Written> {
  const upstream = mockUpstream(old);
  mockWrites(answer);
  const proxy = await startProxy({ DELETION_HANDLES: 'true' });
  await proxy.ask(PATH);
  await proxy.ask(`${PATH}?type=URL`);
  expect(upstream.asked).toBe(1);
  await proxy.ask(PATH, { method, body: '[]' });
  return { upstream, proxy };
}

describe('read after a write', () => {
  describe.each(['PUT', 'DELETE'])('record written by %s', (method) => {
    test.each(success)('is loaded again exactly once after the response %s', async (_what, answer) => {
      const { upstream, proxy } = await writeAfterRead(answer, method);
      upstream.answers(fresh);
      for (const target of [PATH, `${PATH}?type=URL`, '/api/handles/21.t11998%2FABC?pretty']) {
        expect((await proxy.ask(target)).text).toContain('/new');
      }
      expect(upstream.asked).toBe(2);
    });
  });

  describe('prefix record', () => {
    const [short, long] = ['/api/handles/21.t11998', '/api/handles/0.na/21.T11998'];

    test('has one entry for both of its names', async () => {
      const upstream = mockUpstream(recordOf(undefined, '21.T11998'));
      const proxy = await startProxy();
      expect((await proxy.ask(short)).text).toContain('"handle":"21.t11998"');
      expect((await proxy.ask(long)).text).toContain('"handle":"0.na/21.T11998"');
      expect(upstream.asked).toBe(1);
    });

    test.each([
      [short, long],
      [long, short],
    ])('is loaded again at %s after a write at %s', async (read, written) => {
      const named = read.slice('/api/handles/'.length);
      const upstream = mockUpstream(recordOf([urlValue('https://example.org/old')], named));
      mockWrites();
      const proxy = await startProxy();
      await proxy.ask(read);
      await proxy.ask(written, { method: 'PUT', body: '[]' });
      upstream.answers(recordOf([urlValue('https://example.org/new')], named));
      expect((await proxy.ask(read)).text).toContain('/new');
    });
  });

  describe('record after a write', () => {
    test.each(success)(
      'is not served stale after the response %s when the upstream fails',
      async (_what, answer) => {
        const { upstream, proxy } = await writeAfterRead(answer, 'PUT');
        upstream.answers(broken);
        expect((await proxy.ask(PATH)).status).toBe(502);
      },
    );

    test('is not found after a deletion', async () => {
      const { upstream, proxy } = await writeAfterRead(jsonAnswer(200, { responseCode: 1 }), 'DELETE');
      upstream.answers(notFound());
      expect((await proxy.ask(PATH)).status).toBe(404);
      upstream.answers(broken);
      proxy.pass(3_600_000);
      expect((await proxy.ask(PATH)).status, 'the deleted record does not come back').toBe(404);
    });

    test.each([...refusals, ...neverSent])('remains a hit after %s', async (_what, answer) => {
      const { upstream, proxy } = await writeAfterRead(answer, 'PUT');
      upstream.answers(fresh);
      const { text, headers } = await proxy.ask(PATH);
      expect(text).toContain('/old');
      expect(headers['cache-status']).toContain('hit');
      expect(upstream.asked).toBe(1);
    });

    test.each(unknown)('is loaded on every read after %s', async (_what, answer) => {
      const { upstream, proxy } = await writeAfterRead(answer, 'PUT');
      expect((await proxy.ask(PATH)).text).toContain('/old');
      upstream.answers(fresh);
      expect((await proxy.ask(PATH)).text, 'the write was carried out late').toContain('/new');
      expect(upstream.asked).toBe(3);
    });

    test.each(unknown)('is served stale after %s only when the upstream fails', async (_what, answer) => {
      const { upstream, proxy } = await writeAfterRead(answer, 'PUT');
      upstream.answers(broken);
      const { text, headers } = await proxy.ask(PATH);
      expect(text).toContain('/old');
      expect(headers['cache-status']).toContain('detail=error');
      expect(upstream.asked).toBe(2);
    });

    test.each(unknown)('is stored again after %s once the fence has expired', async (_what, answer) => {
      const { upstream, proxy } = await writeAfterRead(answer, 'PUT');
      upstream.answers(fresh);
      proxy.pass(60_000);
      for (let count = 0; count < 4; count++) expect((await proxy.ask(PATH)).text).toContain('/new');
      expect(upstream.asked, 'asked at most once more than needed').toBeLessThanOrEqual(3);
      expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    });
  });

  test('returns other handles from the cache', async () => {
    const upstream = mockUpstream(old);
    mockWrites();
    const proxy = await startProxy();
    await proxy.ask(PATH);
    await proxy.ask(`${PATH}d`, { method: 'PUT', body: '[]' });
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    expect(upstream.asked).toBe(1);
  });

  test('finds a created handle immediately despite its negative-cache entry', async () => {
    const upstream = mockUpstream(notFound());
    mockWrites(jsonAnswer(201, { responseCode: 1 }));
    const proxy = await startProxy();
    expect((await proxy.ask(PATH)).status).toBe(404);
    await proxy.ask('/api/handles/21.t11998/ABC', { method: 'PUT', body: '[]' });
    upstream.answers(fresh);
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  test('loads only the exact handle again when the upstream is case-sensitive', async () => {
    const upstream = mockUpstream((target) =>
      recordOf([urlValue('https://example.org/')], `21.T11998/${target.slice(-3)}`),
    );
    mockWrites();
    const proxy = await startProxy({ UPSTREAM_CASE_SENSITIVE: 'true' });
    await proxy.ask(PATH);
    await proxy.ask('/api/handles/21.T11998/ABC', { method: 'PUT', body: '[]' });
    await proxy.ask(PATH);
    expect(upstream.asked).toBe(1);
    await proxy.ask(PATH, { method: 'PUT', body: '[]' });
    await proxy.ask(PATH);
    expect(upstream.asked).toBe(2);
  });
});
