// The proxy never redirects a write, because clients would repeat it as a GET and silently lose it.
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH } from '../support/upstream.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const env = { DELETION_HANDLES: 'true' };

describe('redirect of a write', () => {
  test.each([301, 302, 303, 307, 308])('is relayed, not followed, for an upstream %i', async (status) => {
    const location = 'https://upstream.test:8000/elsewhere';
    const sent = mockWrites({ status, rawHeaders: ['Location', location] });
    const proxy = await startProxy(env);
    for (const method of ['PUT', 'DELETE', 'POST']) {
      const answer = await proxy.ask(PATH, { method, body: '[]' });
      expect([answer.status, answer.headers.location]).toEqual([status, location]);
    }
    expect(sent).toHaveLength(3);
  });

  test.each([
    ['a trailing slash', '/api/handles/21.T11998/'],
    ['two trailing slashes', '/api/handles/21.T11998/abc//'],
    ['no suffix', '/api/handles/21.T11998'],
    ['doubled slashes', '/api/handles//21.T11998//abc'],
    ['dot segments', '/api/handles/../handles/21.T11998/abc'],
    ['no handle', '/api/handles'],
    ['a slash without a handle', '/api/handles/'],
  ])('is not caused by %s', async (_what, target) => {
    const sent = mockWrites(jsonAnswer(201, { responseCode: 1 }));
    const proxy = await startProxy(env);
    for (const method of ['PUT', 'DELETE', 'POST']) {
      expect((await proxy.ask(target, { method, body: '[]' })).status).toBe(201);
    }
    expect(sent.map(({ method }) => method)).toEqual(['PUT', 'DELETE', 'POST']);
  });
});
