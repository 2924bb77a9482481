// Requests with credentials are always forwarded; their responses are never cached.
import { brotliCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream, recordOf, urlValue } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

const Authorization = 'Basic MzAwJTNBMjEuVDExOTk4L1VTRVIwMTpwYXNzd29yZA==';
const secret = recordOf([urlValue('https://example.org/secret')]);
const open = recordOf([urlValue('https://example.org/open')]);

describe('requests with credentials', () => {
  describe('GET', () => {
    test.each([
      ['with Authorization', PATH, { Authorization }],
      ['with a session', PATH, { Authorization: 'Handle sessionId="1x"' }],
      ['with empty Authorization', PATH, { Authorization: '' }],
      ['with publicOnly=false', `${PATH}?publicOnly=false`, {}],
      ['with both', `${PATH}?publicOnly=false&index=2`, { Authorization }],
    ])(
      'is always forwarded (%s), and its response is neither stored nor shared',
      async (_what, target, headers) => {
        const upstream = mockUpstream(open);
        const proxy = await startProxy();
        await proxy.ask(PATH);
        upstream.answers(secret);
        for (let count = 0; count < 2; count++) {
          const answer = await proxy.ask(target, { headers: headers });
          expect(answer.text).toContain('/secret');
          expect(answer.headers['cache-control']).toBe('no-store');
          expect(answer.headers['cache-status']).toBe('handle-resolver-proxy; fwd=bypass');
        }
        expect((await proxy.ask(PATH)).text).toContain('/open');
        expect(upstream.targets).toEqual([PATH, target, target]);
      },
    );

    test('is forwarded without headers that caches in front prefer to Cache-Control', async () => {
      const names = [
        'Expires',
        'CDN-Cache-Control',
        'Cloudflare-CDN-Cache-Control',
        'X-LiteSpeed-Cache-Control',
        'Surrogate-Control',
        'X-Accel-Expires',
      ];
      const given = Object.fromEntries(names.map((name) => [name, 'max-age=600']));
      mockUpstream({ ...secret, headers: { ...given, 'X-Gateway': 'yes' } });
      const { headers } = await (await startProxy()).ask(PATH, { headers: { Authorization } });
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-gateway': 'yes' });
      expect(names.filter((name) => headers[name.toLowerCase()] !== undefined)).toEqual([]);
    });

    const json = Buffer.from(JSON.stringify(secret.body));
    test.each([
      ['gzip', 'an uncompressed record', json],
      ['br', 'a Brotli-compressed record', brotliCompressSync(json)],
    ])(
      'returns Content-Encoding %s and the body unchanged for %s, and omits the ETag',
      async (coding, _what, body) => {
        mockUpstream({ ...secret, body, headers: { 'Content-Encoding': coding } });
        const proxy = await startProxy();
        const answer = await proxy.ask(PATH, { headers: { Authorization } });
        expect([answer.status, answer.headers['content-encoding'], answer.headers.etag]).toEqual([
          200,
          coding,
          undefined,
        ]);
        expect(answer.body).toEqual(body);
      },
    );

    test('is forwarded with an invalid index too if its response cannot be decoded', async () => {
      mockUpstream({ ...secret, body: json, headers: { 'Content-Encoding': 'gzip' } });
      const proxy = await startProxy();
      const answer = await proxy.ask(`${PATH}?index=x`, { headers: { Authorization } });
      expect([answer.status, answer.body]).toEqual([200, json]);
    });

    test('does not join the load of a concurrent anonymous GET', async () => {
      let release: (value: unknown) => void = () => undefined;
      const after = new Promise((resolve) => (release = resolve));
      const upstream = mockUpstream({ ...open, after });
      const proxy = await startProxy();
      const both = [proxy.ask(PATH), proxy.ask(PATH, { headers: { Authorization } })];
      await expect.poll(() => upstream.asked).toBe(2);
      release(undefined);
      await Promise.all(both);
      expect(upstream.asked).toBe(2);
    });

    test('returns 401 for a wrong password even when the record is cached', async () => {
      const upstream = mockUpstream();
      const proxy = await startProxy();
      await proxy.ask(PATH);
      const challenge = { 'WWW-Authenticate': 'Basic realm="handle"' };
      upstream.answers({ status: 401, body: '', headers: challenge });
      const answer = await proxy.ask(PATH, { headers: { Authorization } });
      expect([answer.status, answer.text, answer.headers['www-authenticate']]).toEqual([
        401,
        '',
        challenge['WWW-Authenticate'],
      ]);
      expect((await proxy.ask(PATH)).status).toBe(200);
    });

    test('returns the upstream error instead of the cached record', async () => {
      const upstream = mockUpstream();
      const proxy = await startProxy();
      await proxy.ask(PATH);
      upstream.answers({ status: 500, body: '{"responseCode":2}' });
      const answer = await proxy.ask(PATH, { headers: { Authorization } });
      expect([answer.status, answer.text]).toEqual([500, '{"responseCode":2}']);
    });

    test('bypasses the cache even with If-None-Match', async () => {
      const upstream = mockUpstream();
      const proxy = await startProxy();
      const { headers } = await proxy.ask(PATH);
      const conditional = { Authorization, 'If-None-Match': headers.etag! };
      expect((await proxy.ask(PATH, { headers: conditional })).status).toBe(200);
      expect(upstream.asked).toBe(2);
    });
  });

  test('keep the HEAD method when they are forwarded', async () => {
    const sent = mockWrites(
      { status: 200, rawHeaders: ['Content-Type', 'application/json', 'Content-Length', '99'] },
      { methods: ['HEAD'] },
    );
    const proxy = await startProxy();
    const answer = await proxy.ask(PATH, { method: 'HEAD', headers: { Authorization } });
    expect([answer.status, answer.headers['content-length'], answer.text]).toEqual([200, '99', '']);
    expect(sent.map(({ headers }) => headers['authorization'])).toEqual([Authorization]);
  });

  test('do not reveal the credentials in proxy error bodies', async () => {
    mockWrites({ status: 0, error: 'ECONNRESET' });
    const proxy = await startProxy();
    const { status, text } = await proxy.ask(PATH, { method: 'PUT', headers: { Authorization } });
    expect(status).toBe(502);
    expect(text).not.toContain(Authorization.slice(6));
  });
});
