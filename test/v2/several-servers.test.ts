import { describe, expect, test } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { basic, startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { type V2Question, askV2, gist, read, urlTo } from '../support/v2.js';

const permissions = '111111111111';
const adminBy = (handle: string) => ({
  index: 100,
  type: 'HS_ADMIN',
  data: { format: 'admin', value: { handle, index: 300, permissions } },
});
const USER = '21.T1/USER';
const secret = {
  index: 300,
  type: 'HS_SECKEY',
  data: { format: 'string', value: 'secret' },
  permissions: '1100',
};

/** Serves 21.T1 except its prefix record. */
const own = await startDemoServer({
  prefixes: ['21.T1'],
  seed: {
    [USER]: [secret, adminBy(USER)],
    '21.T1/page': [textValue(1, 'URL', 'https://example.org/a'), adminBy(USER)],
  },
});
const root = await startDemoServer({
  prefixes: ['0.NA', '99.FAR'],
  seed: { '0.NA/21.T1': [textValue(1, 'DESC', 'at the root'), adminBy(USER)] },
});

async function start(env: Record<string, string> = {}) {
  for (const server of [own, root]) server.reset();
  const { url } = await startProxy({
    UPSTREAMS: JSON.stringify([
      { prefixes: '21.T1', url: own.url },
      { prefixes: '*', url: root.url, readOnly: true },
    ]),
    DELETION_HANDLES: 'true',
    ...env,
  });
  const ask = askV2(url);
  return (path: string, question: V2Question = {}) =>
    ask(path, { as: basic(`300:${USER}`, 'secret'), ...question });
}

const PUT: V2Question = { method: 'PUT', body: [urlTo('new')] };

describe('ePIC v2 with several upstream servers', () => {
  describe('prefix record missing at its server', () => {
    test('is read at the default server without credentials', async () => {
      const v2 = await start();
      const answer = await v2('/0.NA/21.T1');
      expect([answer.status, gist(answer)[0]]).toEqual([200, [1, 'DESC', 'at the root']]);
      expect([own.asked, root.asked]).toEqual([1, 1]);
      expect(root.lastRequest?.headers.authorization).toBeUndefined();
    });

    test.each<[string, V2Question, number]>([
      ['PUT', PUT, 403],
      ['PUT with If-None-Match: *', { ...PUT, headers: { 'If-None-Match': '*' } }, 403],
      ['PUT with If-Match: *', { ...PUT, headers: { 'If-Match': '*' } }, 403],
      // A Handle server returns not found for a DELETE under a foreign prefix (recordings "delete: …").
      ['DELETE', { method: 'DELETE' }, 404],
    ])('is not written at the default server: %s', async (_what, question, status) => {
      const v2 = await start();
      const answer = await v2('/0.NA/21.T1', question);
      expect([answer.status, root.lastRequest?.method ?? 'GET']).toEqual([status, 'GET']);
      expect((await v2('/0.NA/21.T1')).text).toContain('at the root');
    });
  });

  test('sends every request for a handle only to the server of its prefix', async () => {
    const v2 = await start();
    expect((await v2('/21.T1/page')).status).toBe(200);
    expect((await v2('/21.T1/none')).status).toBe(404);
    expect((await v2('/21.T1/page', PUT)).status).toBe(204);
    expect(root.asked).toBe(0);
  });

  describe('handle under a prefix without a server', () => {
    const ALONE = { UPSTREAMS: JSON.stringify([{ prefixes: '21.T1', url: own.url }]) };

    test.each<[string, V2Question, number, number]>([
      ['GET', {}, 404, 301],
      ['PUT', PUT, 403, 400],
      ['PUT with If-None-Match: *', { ...PUT, headers: { 'If-None-Match': '*' } }, 403, 400],
      ['DELETE', { method: 'DELETE' }, 404, 100],
    ])('is rejected without an upstream request: %s', async (_what, question, status, responseCode) => {
      const v2 = await start(ALONE);
      const answer = await v2('/99.FAR/x', question);
      expect([answer.status, read(answer)]).toMatchObject([status, { responseCode }]);
      expect([own.asked, root.asked]).toEqual([0, 0]);
    });
  });
});
