// A Handle server treats a POST of a handle as a read (recordings "POST /api/handles/<handle> … = GET").
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream } from '../support/upstream.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

describe('POST of a handle', () => {
  test('is forwarded each time and leaves the cache entry fresh', async () => {
    const upstream = mockUpstream();
    const sent = mockWrites(jsonAnswer(200, { responseCode: 1, values: [] }));
    const proxy = await startProxy();
    await proxy.ask(PATH);
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    for (const body of ['index=1', 'index=2']) {
      const answer = await proxy.ask(PATH, { method: 'POST', headers, body });
      expect(answer.headers['cache-status']).toBe('handle-resolver-proxy; fwd=bypass');
    }
    expect(sent.map(({ body }) => body)).toEqual(['index=1', 'index=2']);
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    expect(upstream.asked).toBe(1);
  });
});
