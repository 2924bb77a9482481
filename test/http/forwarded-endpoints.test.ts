import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

describe('forwarded endpoints', () => {
  describe.each([
    ['GET', '/api/site'],
    ['GET', '/api/prefixes?page=0'],
    ['POST', '/api/prefixes'],
    ['DELETE', '/api/prefixes/21.T1'],
    ['POST', '/api/verifications'],
    ['GET', '/api/verifications/300:21.T1/USER?nonce=AA'],
    ['POST', '/api/site'],
    ['POST', '/api/sessions'],
    ['GET', '/api/sessions/this'],
    ['PUT', '/api/sessions/this'],
    ['DELETE', '/api/sessions/this'],
  ])('%s %s', (method, target) => {
    test('is forwarded with credentials on every request and never cached', async () => {
      const sent = mockWrites(jsonAnswer(200, { responseCode: 1, sessionId: '1x' }), { methods: [method] });
      const proxy = await startProxy();
      const headers = { Authorization: 'Handle sessionId="1x"', 'X-Requested-With': 'XMLHttpRequest' };
      for (let count = 0; count < 2; count++) {
        const answer = await proxy.ask(target, { method, headers });
        expect(answer.status).toBe(200);
        expect(answer.text).toContain('"sessionId":"1x"');
        expect(answer.headers['cache-control']).toBe('no-store');
      }
      const lowered = { authorization: headers.Authorization, 'x-requested-with': 'XMLHttpRequest' };
      expect(sent.map((asked) => asked.target)).toEqual([target, target]);
      for (const asked of sent) expect(asked.headers).toMatchObject(lowered);
    });
  });

  test('do not include other paths, which return 404', async () => {
    const sent = mockWrites(undefined, { methods: ['GET', 'POST', 'PUT'], path: /^/ });
    const proxy = await startProxy({ REDIRECT_ENABLED: 'false' });
    for (const target of ['/api/foo', '/api', '/api/sitemap', '/apis/site', '/api/v3', '/hrls/handles']) {
      for (const method of ['GET', 'POST', 'PUT']) {
        expect((await proxy.ask(target, { method })).status, `${method} ${target}`).toBe(404);
      }
    }
    expect(sent).toEqual([]);
  });
});
