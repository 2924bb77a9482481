// A Handle server accepts interface paths in any case (recording "unknown: GET /API/handles/"), with letters
// as escapes, and with a second slash in front.
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { HANDLE, PATH, UPSTREAM_URL, mockUpstream, recordOf } from '../support/upstream.js';
import { USER01 } from '../support/v2.js';
import { scriptUpstream, reply } from '../support/v2-upstream.js';

useNock();

const SPELLINGS = [
  '/API/handles',
  '/api/HANDLES',
  '/API/HANDLES',
  '/Api/Handles',
  '/aPI/hAnDlEs',
  '/%61pi/%48andles',
  '//api/handles',
];

const cacheStatus = async (proxy: Proxy, path: string): Promise<unknown> =>
  (await proxy.ask(path)).headers['cache-status'];

describe('path case', () => {
  describe('read', () => {
    test.each(SPELLINGS)('returns the same response under %s for a miss and for hits', async (base) => {
      const upstream = mockUpstream();
      const proxy = await startProxy();
      const path = `${base}/${HANDLE}`;
      const cold = await proxy.ask(path);
      const hot = await proxy.ask(path);
      const prepared = await proxy.ask(path);
      const slow = await proxy.ask(path, { headers: { 'X-Forwarded-Proto': 'https', Via: '1.1 other' } });
      const expected = await proxy.ask(PATH);
      for (const { status, text } of [cold, hot, prepared, slow]) {
        expect([status, text]).toEqual([200, expected.text]);
      }
      expect(upstream.targets).toEqual([PATH]);
      expect(prepared.headers['cache-status']).toContain('hit');
    });

    test('preserves the spelling of the handle', async () => {
      mockUpstream((target) => recordOf(undefined, decodeURIComponent(target.slice('/api/handles/'.length))));
      const proxy = await startProxy();
      const { text } = await proxy.ask('/API/handles/21.t11998/API/Handles/x');
      expect(JSON.parse(text)).toMatchObject({ handle: '21.t11998/API/Handles/x' });
    });

    test.each(['/API/handlesx', '/API/sites', '/API', '/API/v2x/handles', '/api/%68andles%78'])(
      'returns 404 for %s',
      async (path) => {
        const upstream = mockUpstream();
        const { status, text } = await (await startProxy()).ask(path);
        expect([status, JSON.parse(text)]).toMatchObject([404, { responseCode: 4 }]);
        expect(upstream.asked).toBe(0);
      },
    );
  });

  describe('write', () => {
    test.each(SPELLINGS)(
      'under %s is forwarded as /api/handles and invalidates the cached record',
      async (base) => {
        mockUpstream();
        const sent: string[] = [];
        nock(UPSTREAM_URL)
          .put(/.*/)
          .reply(function (target) {
            sent.push(target);
            return [200, { responseCode: 1, handle: HANDLE }];
          });
        const proxy = await startProxy();
        await proxy.ask(PATH);
        expect(await cacheStatus(proxy, PATH)).toContain('hit');
        const headers = { 'Content-Type': 'application/json', Authorization: USER01 };
        expect((await proxy.ask(`${base}/${HANDLE}`, { method: 'PUT', headers, body: '[]' })).status).toBe(
          200,
        );
        expect(sent).toEqual([PATH]);
        expect(await cacheStatus(proxy, PATH)).toContain('fwd=miss');
      },
    );

    test.each(SPELLINGS)(
      'is rejected under %s when it is a DELETE and deletion is disabled',
      async (base) => {
        const upstream = mockUpstream();
        const proxy = await startProxy();
        for (const query of ['', '?index=1']) {
          const { status, text } = await proxy.ask(`${base}/${HANDLE}${query}`, { method: 'DELETE' });
          expect([status, JSON.parse(text)]).toMatchObject([403, { responseCode: 400, handle: HANDLE }]);
        }
        expect(upstream.targets).toEqual([PATH]);
      },
    );
  });

  describe('ePIC v2', () => {
    test.each([
      '/API/v2/handles',
      '/api/V2/handles',
      '/api/v2/HANDLES',
      '/Api/V2/Handles',
      '/api/%762/handles',
    ])('behaves the same under %s', async (base) => {
      scriptUpstream(reply.record([]), reply.missing);
      const proxy = await startProxy();
      const headers = { Authorization: USER01 };
      const removed = await proxy.ask(`${base}/${HANDLE}`, { method: 'DELETE', headers });
      expect([removed.status, JSON.parse(removed.text)]).toMatchObject([403, { code: 'V2_NO_DELETE' }]);
      expect((await proxy.ask(`${base}/${HANDLE}`, { headers })).status).toBe(404);
      const stranger = await proxy.ask(`${base}/${HANDLE}`);
      expect([stranger.status, stranger.headers['www-authenticate']]).toEqual([401, 'Basic realm="handle"']);
    });
  });

  test('does not prevent the forwarding of a list', async () => {
    const upstream = mockUpstream({ status: 200, body: { responseCode: 1, handles: [] } });
    const proxy = await startProxy();
    expect(
      (await proxy.ask('/API/handles?prefix=21.T11998', { headers: { Authorization: USER01 } })).status,
    ).toBe(200);
    expect(upstream.targets).toEqual(['/api/handles?prefix=21.T11998']);
  });
});
