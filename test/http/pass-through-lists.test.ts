import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { mockWrites } from '../support/writes.js';

useNock();

const LIST = '/api/handles?prefix=21.T11998&page=0&pageSize=2';
const body =
  '{"responseCode":1,"prefix":"21.T11998","totalCount":"2","page":0,"pageSize":2,"handles":["21.T11998/A"]}';

describe('handle list', () => {
  test.each([
    LIST,
    `/api/handles/${LIST.slice('/api/handles'.length)}`,
    '/api/handles?prefix=0.NA%2F21.T11998&pretty',
  ])('is forwarded upstream for each GET %s, with the caller’s credentials', async (target) => {
    const rawHeaders = ['Content-Type', 'application/json;charset=utf-8'];
    const sent = mockWrites({ status: 200, body, rawHeaders }, { methods: ['GET'] });
    const proxy = await startProxy();
    const headers = { Authorization: 'Basic eDp5' };
    for (let count = 0; count < 2; count++) {
      const answer = await proxy.ask(target, { headers });
      expect([answer.status, answer.text]).toEqual([200, body]);
      expect(answer.headers['cache-control']).toBe('no-store');
    }
    await proxy.ask(target);
    expect(sent.map((asked) => [asked.target, asked.headers['authorization']])).toEqual([
      [target, 'Basic eDp5'],
      [target, 'Basic eDp5'],
      [target, undefined],
    ]);
  });

  test('without a prefix is forwarded with a login, which the Handle server checks', async () => {
    const sent = mockWrites({ status: 401, body: '', rawHeaders: [] }, { methods: ['GET'] });
    const proxy = await startProxy();
    const target = '/api/handles?URL=*';
    expect((await proxy.ask(target, { headers: { Authorization: 'Basic eDp5' } })).status).toBe(401);
    expect((await proxy.ask(target)).status).toBe(400);
    expect(sent.map((asked) => asked.target)).toEqual([target]);
  });
});
