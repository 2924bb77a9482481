import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

const MIB = 1024 * 1024;
const body = (bytes: number): Buffer => Buffer.alloc(bytes, 'x');

describe('http.maxBodySize', () => {
  describe.each([
    ['with its length declared', (bytes: number) => ({ 'Content-Length': String(bytes) })],
    ['in chunks', () => ({ 'Transfer-Encoding': 'chunked' })],
  ])('body %s', (_how, headers) => {
    test('is forwarded at 1 MiB', async () => {
      const sent = mockWrites();
      const proxy = await startProxy();
      const answer = await proxy.ask(PATH, { method: 'PUT', headers: headers(MIB), body: body(MIB) });
      expect(answer.status).toBe(200);
      expect(sent[0]?.body).toHaveLength(MIB);
    });

    test('is rejected with 413, and evicts nothing, at 1 MiB and one byte', async () => {
      const upstream = mockUpstream();
      const sent = mockWrites();
      const proxy = await startProxy();
      await proxy.ask(PATH);
      const answer = await proxy.ask(PATH, { method: 'PUT', headers: headers(MIB + 1), body: body(MIB + 1) });
      expect(answer.status).toBe(413);
      expect(JSON.parse(answer.text)).toMatchObject({ responseCode: 4 });
      expect(sent).toEqual([]);
      expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
      expect(upstream.asked).toBe(1);
    });
  });

  test('applies to POST /api/sessions', async () => {
    const sent = mockWrites();
    const proxy = await startProxy();
    expect((await proxy.ask('/api/sessions', { method: 'POST', body: body(MIB + 1) })).status).toBe(413);
    expect(sent).toEqual([]);
  });

  test('is configurable', async () => {
    mockWrites();
    const proxy = await startProxy({ HTTP_MAX_BODY_SIZE: '2KiB' });
    expect((await proxy.ask(PATH, { method: 'PUT', body: body(2048) })).status).toBe(200);
    expect((await proxy.ask(PATH, { method: 'PUT', body: body(2049) })).status).toBe(413);
  });
});
