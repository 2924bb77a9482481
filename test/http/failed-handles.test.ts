// A handle whose load failed is not loaded again within upstream.retryAfter.
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { type Answer, HANDLE, PATH, mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

const RETRY_AFTER = 5000;
const FAILED: Answer = { status: 500, body: { responseCode: 2, message: 'cannot read it' } };
const ROUTES = [PATH, PATH.toLowerCase(), `${PATH}?pretty`, `/${HANDLE}`, `/api/v2/handles/${HANDLE}`];

describe('failure cache', () => {
  describe('failed handle', () => {
    test.each<[string, Answer, number]>([
      ['500', FAILED, 500],
      ['an invalid record', { status: 200, body: 'rubbish' }, 502],
      ['a gateway 502', { status: 502, body: '<h1>Bad Gateway</h1>' }, 502],
      ['a connection reset', { status: 0, body: '', error: 'ECONNRESET' }, 502],
    ])(
      'is not loaded again within upstream.retryAfter, and every caller receives the failure (%s)',
      async (_what, answer, status) => {
        const proxy = await startProxy({ V2_ANONYMOUS_READ: 'true' });
        const upstream = mockUpstream(answer);
        const first = await proxy.ask(PATH);
        expect(first.status).toBe(status);
        const { asked } = upstream;
        for (const route of ROUTES)
          expect((await proxy.ask(route)).status, route).toBeGreaterThanOrEqual(500);
        expect((await proxy.ask(PATH)).text).toBe(first.text);
        proxy.pass(RETRY_AFTER - 1);
        expect((await proxy.ask(PATH)).status).toBe(status);
        expect(upstream.asked).toBe(asked);

        proxy.pass(1);
        upstream.answers(recordOf());
        expect((await proxy.ask(PATH)).status).toBe(200);
      },
    );

    test('is loaded by an authoritative read, which replaces the cached failure', async () => {
      const proxy = await startProxy();
      const upstream = mockUpstream(FAILED);
      await proxy.ask(PATH);
      expect((await proxy.ask(`${PATH}?auth=true`)).status).toBe(500);
      expect(upstream.asked).toBe(2);
      upstream.answers(recordOf());
      expect((await proxy.ask(`${PATH}?auth=true`)).status).toBe(200);
      expect((await proxy.ask(PATH)).status).toBe(200);
    });

    test.each<[string, Answer]>([
      ['busy', { status: 503, body: 'busy' }],
      ['unreachable', { status: 0, body: '', error: 'ECONNREFUSED' }],
    ])('is not loaded again because an authoritative read found the server %s', async (_what, answer) => {
      const proxy = await startProxy();
      const upstream = mockUpstream(FAILED);
      await proxy.ask(PATH);
      upstream.answers(answer);
      await proxy.ask(`${PATH}?auth=true`);
      const { asked } = upstream;
      expect((await proxy.ask(PATH)).status).toBe(500);
      expect(upstream.asked).toBe(asked);
    });

    test.each([{ handle: HANDLE }, { prefix: '21.' }, { prefix: '' }])(
      'is loaded again after a purge (%o)',
      async (target) => {
        const proxy = await startProxy();
        const upstream = mockUpstream(FAILED);
        await proxy.ask(PATH);
        await proxy.app.operations.purge(
          'handle' in target ? { handles: [HANDLE], isSoft: false } : { ...target, isSoft: false },
        );
        upstream.answers(recordOf());
        expect((await proxy.ask(PATH)).status).toBe(200);
      },
    );

    test('does not affect other handles', async () => {
      const proxy = await startProxy();
      mockUpstream((target) => (target === PATH ? FAILED : recordOf(undefined, '21.T11998/other')));
      for (let count = 0; count < 50; count++) expect((await proxy.ask(PATH)).status).toBe(500);
      expect((await proxy.ask('/api/handles/21.T11998/other')).status).toBe(200);
    });

    test('causes a 502 from the cache when the error body is too long to store', async () => {
      const proxy = await startProxy();
      const upstream = mockUpstream({ status: 500, body: { responseCode: 2, message: 'x'.repeat(10_000) } });
      expect((await proxy.ask(PATH)).status).toBe(500);
      expect((await proxy.ask(PATH)).status).toBe(502);
      expect(upstream.asked).toBe(1);
    });
  });

  test('forgets a failure after a later success, so that a record with a short TTL is loaded again', async () => {
    const proxy = await startProxy();
    const upstream = mockUpstream({ status: 503, body: 'busy' });
    expect((await proxy.ask(PATH)).status).toBe(503);
    upstream.answers(recordOf([urlValue('https://example.org/old', 1)]));
    expect((await proxy.ask(PATH)).status).toBe(200);
    upstream.answers(recordOf([urlValue('https://example.org/new', 1)]));
    proxy.pass(1500);
    expect((await proxy.ask(PATH)).text).toContain('/new');
  });

  test('does not cache the failure of a busy or unreachable server', async () => {
    const proxy = await startProxy();
    const upstream = mockUpstream({ status: 503, body: 'busy' });
    expect((await proxy.ask(PATH)).status).toBe(503);
    upstream.answers({ status: 0, body: '', error: 'ECONNREFUSED' });
    expect((await proxy.ask(PATH)).status).toBe(502);
    upstream.answers(recordOf());
    expect((await proxy.ask(PATH)).status).toBe(200);
  });
});
