// A cache entry contradicted by a later Handle server response is replaced or evicted before the next read.
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import {
  HANDLE,
  type MockUpstream,
  PATH,
  mockUpstream,
  notFound,
  recordOf,
  urlValue,
} from '../support/upstream.js';
import { USER01 } from '../support/v2.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const V2_PATH = `/api/v2/handles/${HANDLE}`;
const Authorization = USER01;
const OLD = recordOf([urlValue('https://example.org/old')]);
const NEW = recordOf([urlValue('https://example.org/new')]);
const BODY = JSON.stringify([{ type: 'URL', parsed_data: 'https://example.org/mine' }]);

/** Caches `known`, then switches the server to `now`. */
async function startWith(
  known: ReturnType<typeof recordOf>,
  now: ReturnType<typeof recordOf>,
): Promise<Proxy & { upstream: MockUpstream }> {
  const upstream = mockUpstream(known);
  const proxy = await startProxy({ DELETION_HANDLES: 'true' });
  for (let times = 0; times < 3; times++) await proxy.ask(PATH);
  expect(upstream.asked).toBe(1);
  upstream.answers(now);
  return { ...proxy, upstream };
}

describe('cache entry after a later upstream response', () => {
  describe('entry for a deleted handle', () => {
    test.each([
      ['DELETE over ePIC v2', V2_PATH, { method: 'DELETE' }, 404],
      ['conditional DELETE over ePIC v2', V2_PATH, { method: 'DELETE', headers: { 'If-Match': '*' } }, 412],
      [
        'conditional PUT over ePIC v2',
        V2_PATH,
        { method: 'PUT', body: BODY, headers: { 'If-Match': '*' } },
        412,
      ],
      ['conditional PUT', PATH, { method: 'PUT', body: '{"values":[]}', headers: { 'If-Match': '*' } }, 412],
      ['GET with a login', PATH, {}, 404],
      ['GET with a login over ePIC v2', V2_PATH, {}, 404],
      ['GET with auth=true', `${PATH}?auth=true`, { headers: { Authorization: undefined } }, 404],
    ])('is evicted for all readers after a %s', async (_what, path, question, status) => {
      const proxy = await startWith(OLD, notFound());
      mockWrites(jsonAnswer(404, { responseCode: 100 }));
      const type = 'body' in question ? { 'Content-Type': 'application/json' } : {};
      const headers = { Authorization, ...type, ...('headers' in question ? question.headers : {}) };
      const given = Object.entries(headers).filter(([, text]) => text !== undefined);
      const asked = { ...question, headers: Object.fromEntries(given) as Record<string, string> };
      expect((await proxy.ask(path, asked)).status).toBe(status);
      expect((await proxy.ask(PATH)).status).toBe(404);
    });

    test('is evicted after a compressed 404 response to a GET with a login', async () => {
      const { status, body } = notFound();
      const compressed = {
        status,
        body: gzipSync(JSON.stringify(body)),
        headers: { 'Content-Encoding': 'gzip' },
      };
      const proxy = await startWith(OLD, compressed);
      const headers = { Authorization, 'Accept-Encoding': 'gzip' };
      expect((await proxy.ask(PATH, { headers })).status).toBe(404);
      expect((await proxy.ask(PATH)).status).toBe(404);
    });
  });

  describe('entry for a replaced record', () => {
    test.each([
      ['PUT over ePIC v2', V2_PATH, BODY],
      ['PUT', PATH, '{"values":[]}'],
    ])('is replaced for all readers after a failed If-Match in a %s', async (_what, path, body) => {
      const proxy = await startWith(OLD, NEW);
      const headers = { Authorization, 'Content-Type': 'application/json', 'If-Match': '"old"' };
      expect((await proxy.ask(path, { method: 'PUT', body, headers })).status).toBe(412);
      expect((await proxy.ask(PATH)).text).toContain('/new');
    });
  });

  describe('entry for an unchanged record', () => {
    test.each([
      ['a refused login', { status: 401, body: { responseCode: 403 } }],
      ['a 404 from a different service', { status: 404, body: '<h1>Not Found</h1>' }],
    ])('remains a hit after %s', async (_what, told) => {
      const proxy = await startWith(OLD, told);
      for (const path of [PATH, V2_PATH]) {
        expect((await proxy.ask(path, { headers: { Authorization } })).status).toBe(told.status);
        expect((await proxy.ask(PATH)).text).toContain('/old');
      }
      expect(proxy.upstream.asked).toBe(3);
    });

    test('remains cached after a failed If-Match', async () => {
      const proxy = await startWith(OLD, OLD);
      const headers = { Authorization, 'If-Match': '"other"' };
      expect((await proxy.ask(PATH, { method: 'PUT', body: '{"values":[]}', headers })).status).toBe(412);
      const { asked } = proxy.upstream;
      expect((await proxy.ask(PATH)).text).toContain('/old');
      expect(proxy.upstream.asked).toBe(asked);
    });

    test('remains a hit after a rejected PUT with overwrite=false', async () => {
      const proxy = await startWith(OLD, OLD);
      mockWrites(jsonAnswer(409, { responseCode: 101 }));
      const headers = { Authorization, 'Content-Type': 'application/json' };
      const path = `${PATH}?overwrite=false`;
      expect((await proxy.ask(path, { method: 'PUT', body: '{"values":[]}', headers })).status).toBe(409);
      expect((await proxy.ask(PATH)).text).toContain('/old');
      expect(proxy.upstream.asked).toBe(1);
    });
  });

  describe('negative entry for a newly created handle', () => {
    test.each([
      ['PUT with If-None-Match: * over ePIC v2', V2_PATH, BODY, 412],
      ['PUT with If-None-Match: *', PATH, '{"values":[]}', 412],
      ['PUT with overwrite=false', `${PATH}?overwrite=false`, '{"values":[]}', 409],
    ])('is replaced for all readers after a rejected %s', async (_what, path, body, status) => {
      const proxy = await startWith(notFound(), NEW);
      mockWrites(jsonAnswer(409, { responseCode: 101 }));
      const condition: Record<string, string> = status === 412 ? { 'If-None-Match': '*' } : {};
      const headers = { Authorization, 'Content-Type': 'application/json', ...condition };
      expect((await proxy.ask(path, { method: 'PUT', body, headers })).status).toBe(status);
      expect((await proxy.ask(PATH)).text).toContain('/new');
    });
  });
});
