// The old record is current until a write is acknowledged, so sending a write does not evict it.
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import { gate } from '../support/gate.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream, notFound, recordOf, urlValue } from '../support/upstream.js';
import { type WriteAnswer, jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const old = recordOf([urlValue('https://example.org/old')]);
const fresh = recordOf([urlValue('https://example.org/new')]);

describe('read during a write', () => {
  describe('PUT in flight', () => {
    test('does not prevent hits in any representation', async () => {
      const upstream = mockUpstream(old);
      const { opened, open } = gate();
      const sent = mockWrites({ ...jsonAnswer(200, { responseCode: 1 }), after: opened });
      const proxy = await startProxy();
      await proxy.ask(PATH);
      const writing = proxy.ask(PATH, { method: 'PUT', body: '[]' });
      await expect.poll(() => sent.length).toBe(1);
      for (const target of [PATH, PATH, `${PATH}?type=URL`, `${PATH}?pretty`]) {
        const { text, headers } = await proxy.ask(target);
        expect(text).toContain('/old');
        expect(headers['cache-status']).toContain('hit; ttl=3600');
        expect(headers['cache-status']).not.toContain('detail');
      }
      expect(upstream.asked).toBe(1);
      upstream.answers(fresh);
      open();
      expect((await writing).status).toBe(200);
      expect((await proxy.ask(PATH)).text).toContain('/new');
    });

    test('prevents "stored" in the Cache-Status of a miss', async () => {
      const upstream = mockUpstream(old);
      const { opened, open } = gate();
      const sent = mockWrites({ ...jsonAnswer(200, { responseCode: 1 }), after: opened });
      const proxy = await startProxy();
      const writing = proxy.ask(PATH, { method: 'PUT', body: '[]' });
      await expect.poll(() => sent.length).toBe(1);
      const { text, headers } = await proxy.ask(PATH);
      expect(text).toContain('/old');
      expect(headers['cache-status']).toBe('handle-resolver-proxy; fwd=miss; ttl=3600');
      upstream.answers(fresh);
      open();
      await writing;
      const after = await proxy.ask(PATH);
      expect(after.text).toContain('/new');
      expect(after.headers['cache-status']).toContain('stored');
    });

    test('fences a load that started before the write and ends after it', async () => {
      const { opened, open } = gate();
      const upstream = mockUpstream({ ...old, after: opened });
      mockWrites();
      const proxy = await startProxy();
      const slow = proxy.ask(PATH);
      await expect.poll(() => upstream.asked).toBe(1);
      await proxy.ask(PATH, { method: 'PUT', body: '[]' });
      upstream.answers(fresh);
      open();
      expect((await slow).text).toContain('/old');
      expect((await proxy.ask(PATH)).text).toContain('/new');
    });

    test('lets an authoritative response with a changed record replace or evict the entry', async () => {
      const upstream = mockUpstream(old);
      const { opened, open } = gate();
      const sent = mockWrites({ ...jsonAnswer(401, { responseCode: 402 }), after: opened });
      const proxy = await startProxy();
      await proxy.ask(PATH);
      const writing = proxy.ask(PATH, { method: 'PUT', body: '[]' });
      await expect.poll(() => sent.length).toBe(1);
      expect((await proxy.ask(`${PATH}?auth`)).text).toContain('/old');
      expect((await proxy.ask(PATH)).headers['cache-status'], 'the same record').toContain('hit');
      upstream.answers(fresh);
      expect((await proxy.ask(`${PATH}?auth`)).text).toContain('/new');
      expect((await proxy.ask(PATH)).text).toContain('/new');
      open();
      await writing;
    });
  });

  describe('rejected write', () => {
    const refused: [what: string, answer: WriteAnswer][] = [
      ['400', jsonAnswer(400, { responseCode: 202 })],
      ['401', jsonAnswer(401, { responseCode: 402 })],
      ['403', jsonAnswer(403, { responseCode: 400 })],
      ['501 without a body, as for clientCert="true"', { status: 501 }],
      ['a refused connection', { status: 0, error: 'ECONNREFUSED' }],
    ];

    test.each(refused)('allows hits, and later lets loads be stored, after %s', async (_what, answer) => {
      const upstream = mockUpstream(old);
      mockWrites(answer);
      const proxy = await startProxy();
      await proxy.ask(PATH);
      for (let count = 0; count < 5; count++) {
        await proxy.ask(PATH, { method: 'PUT', body: '[]' });
        expect((await proxy.ask(PATH)).headers['cache-status']).toBe('handle-resolver-proxy; hit; ttl=3600');
      }
      expect(upstream.asked).toBe(1);
      proxy.pass(3_600_000);
      expect((await proxy.ask(PATH)).headers['cache-status']).toContain('stored');
      expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    });

    test('does not prevent a secondary from replacing the failing primary', async () => {
      const primary = mockUpstream(notFound());
      primary.answers({ status: 500, body: 'broken' });
      mockWrites({ status: 0, error: 'ECONNREFUSED' });
      nock('http://secondary.test:8000')
        .persist()
        .get(/^\/api/)
        .reply(200, JSON.stringify(old.body), {
          'Content-Type': 'application/json',
        });
      const proxy = await startProxy({ UPSTREAM_SECONDARIES: 'http://secondary.test:8000' });
      expect((await proxy.ask(PATH, { method: 'PUT', body: '[]' })).status).toBe(502);
      expect((await proxy.ask(PATH)).text).toContain('/old');
    });
  });

  test('has no "stored" in Cache-Status while the outcome of the write is unknown', async () => {
    const upstream = mockUpstream(old);
    mockWrites(jsonAnswer(500, { responseCode: 2 }));
    const proxy = await startProxy();
    await proxy.ask(PATH);
    await proxy.ask(PATH, { method: 'PUT', body: '[]' });
    const { headers } = await proxy.ask(PATH);
    expect(headers['cache-status']).toBe('handle-resolver-proxy; fwd=miss; ttl=3600');
    expect(upstream.asked).toBe(2);
  });
});
