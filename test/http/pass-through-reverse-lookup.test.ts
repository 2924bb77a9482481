// Clients such as pyhandle and B2HANDLE search at /hrls/handles.
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { mockWrites } from '../support/writes.js';

useNock();

const TARGET = '/hrls/handles?URL=*&limit=10&prefix=21.T11998';

describe('reverse lookup', () => {
  test('returns 404 when no service is configured', async () => {
    const proxy = await startProxy();
    expect((await proxy.ask(TARGET)).status).toBe(404);
  });

  test('is forwarded with credentials only to the configured service, and is not cached', async () => {
    const answer = { status: 200, body: '["21.T11998/A"]', rawHeaders: ['Content-Type', 'application/json'] };
    const origin = 'http://reverse.test:8080';
    const sent = mockWrites(answer, { methods: ['GET'], origin, path: /^\/hrls/ });
    const proxy = await startProxy({ REVERSE_LOOKUP_URL: origin });
    for (let count = 0; count < 2; count++) {
      const { status, text, headers } = await proxy.ask(TARGET, { headers: { Authorization: 'Basic eDp5' } });
      expect([status, text, headers['cache-control']]).toEqual([200, answer.body, 'no-store']);
    }
    expect(sent.map(({ target, headers }) => [target, headers['authorization']])).toEqual([
      [TARGET, 'Basic eDp5'],
      [TARGET, 'Basic eDp5'],
    ]);
  });

  test('returns 502 when the service is unreachable', async () => {
    const origin = 'http://reverse.test:8080';
    mockWrites({ status: 0, error: 'ECONNREFUSED' }, { methods: ['GET'], origin, path: /^\/hrls/ });
    const proxy = await startProxy({ REVERSE_LOOKUP_URL: origin });
    const { status, text } = await proxy.ask(TARGET);
    expect([status, JSON.parse(text)]).toMatchObject([
      502,
      { message: 'The connection to the reverse lookup service failed' },
    ]);
  });
});
