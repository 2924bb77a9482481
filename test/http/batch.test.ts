// A batch returns the same response for each handle as a single GET, from the same cache.
import { gunzipSync } from 'node:zlib';
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { PLUGINS } from '../../src/app/plugins.js';
import { answerByHandle, batchTarget, elementsOf, numbered, postBatch } from '../support/batch.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { HANDLE, PATH, VALUES, mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

const metricsOf = async ({ app }: Proxy): Promise<string> => (await request(app.admin).get('/metrics')).text;

const [A, NONE, B] = ['21.T1/a', '21.T1/none', '21.T1/b+c d/ü'];

describe('batch of handles', () => {
  describe.each<[form: string, send: (proxy: Proxy, handles: string[]) => ReturnType<Proxy['ask']>]>([
    ['GET /api/handles?handle=', (proxy, handles) => proxy.ask(batchTarget(handles))],
    ['POST /api/resolve', (proxy, handles) => postBatch(proxy, { handles })],
  ])('%s', (_form, send) => {
    test('returns the status and body of the single GET for each handle, in request order', async () => {
      mockUpstream(answerByHandle);
      const proxy = await startProxy();
      const answer = await send(proxy, [B, NONE, A]);
      expect([answer.status, answer.headers['content-type']]).toEqual([
        200,
        'application/json;charset=utf-8',
      ]);
      const bodyOf = async (path: string): Promise<unknown> => JSON.parse((await proxy.ask(path)).text);
      expect(elementsOf(answer)).toEqual([
        { handle: B, status: 200, body: await bodyOf('/api/handles/21.T1/b+c%20d/%C3%BC') },
        { handle: NONE, status: 404, body: { responseCode: 100, handle: NONE } },
        { handle: A, status: 200, body: await bodyOf('/api/handles/21.T1/a') },
      ]);
    });

    test('loads each handle once and caches it for later GETs', async () => {
      const upstream = mockUpstream(answerByHandle);
      const proxy = await startProxy();
      const handles = numbered(40);
      expect(elementsOf(await send(proxy, handles)).map(({ handle }) => handle)).toEqual(handles);
      expect(upstream.asked).toBe(40);
      await send(proxy, handles);
      expect((await proxy.ask(`/api/handles/${handles[7]!}`)).headers['cache-status']).toContain('hit');
      expect(upstream.asked).toBe(40);
    });

    test('serves every spelling of a handle from one load', async () => {
      const upstream = mockUpstream(answerByHandle);
      const spellings = [A, A.toUpperCase(), A, '21.t1/A'];
      const elements = elementsOf(await send(await startProxy(), spellings));
      expect(elements.map(({ handle, body }) => [handle, body.handle])).toEqual(
        spellings.map((spelling) => [spelling, spelling]),
      );
      expect(upstream.asked).toBe(1);
    });

    test('returns the GET error for an invalid handle without affecting other handles', async () => {
      mockUpstream(answerByHandle);
      const elements = elementsOf(
        await send(await startProxy(), ['', `21.T1/${'x'.repeat(2048)}`, '21.T1/\0', A]),
      );
      expect(elements.map(({ status, body }) => [status, body.responseCode])).toEqual([
        [400, 102],
        [400, 102],
        [400, 4],
        [200, 1],
      ]);
    });

    test('returns the stale record when a load fails, or the error if there is none', async () => {
      const upstream = mockUpstream(recordOf([urlValue('https://example.org/', 60)]));
      const proxy = await startProxy();
      await proxy.ask(PATH);
      proxy.pass(61_000);
      upstream.answers({ status: 500, body: { responseCode: 2 } });
      const elements = elementsOf(await send(proxy, [HANDLE, A]));
      expect(elements.map(({ status, stale, body }) => [status, stale, body.responseCode])).toEqual([
        [200, 'error', 1],
        [500, undefined, 2],
      ]);
      expect(await metricsOf(proxy)).toContain('handle_proxy_batch_handles_total{result="stale"} 1');
    });
  });

  describe('value selection', () => {
    test.each([
      ['index=1', { index: 1 }],
      ['index=1&index=2', { index: [1, '2'] }],
      ['type=URL', { type: 'URL' }],
      ['type=EMAIL&type=URL.MIRROR', { type: ['EMAIL', 'URL.MIRROR'] }],
      ['type=URL.&index=2', { type: ['URL.'], index: [2] }],
      ['type=NOSUCH', { type: 'NOSUCH' }],
    ])('interprets %s as a single GET does, both in the query and in the body', async (query, members) => {
      mockUpstream();
      const proxy = await startProxy();
      const single = JSON.parse((await proxy.ask(`${PATH}?${query}`)).text) as unknown;
      const [byQuery] = elementsOf(await proxy.ask(batchTarget([HANDLE], `&${query}`)));
      const [byBody] = elementsOf(await postBatch(proxy, { handles: [HANDLE], ...members }));
      expect([byQuery?.body, byBody?.body]).toEqual([single, single]);
    });
  });

  test('is indented as a whole for ?pretty, and wrapped in a function call for ?callback', async () => {
    mockUpstream(answerByHandle);
    const proxy = await startProxy();
    const plain = elementsOf(await proxy.ask(batchTarget([A, NONE])));
    const pretty = await proxy.ask(batchTarget([A, NONE], '&pretty'));
    expect(pretty.text).toBe(JSON.stringify(plain, null, 2));
    const script = await proxy.ask('/api/resolve?callback=show', {
      method: 'POST',
      body: JSON.stringify({ handles: [A, NONE] }),
    });
    expect(script.headers['content-type']).toBe('application/javascript;charset=utf-8');
    expect(JSON.parse(script.text.replace(/^show\(([^]*)\);$/, '$1'))).toEqual(plain);
  });

  test('returns an empty array for an empty list', async () => {
    mockUpstream();
    expect(elementsOf(await postBatch(await startProxy(), { handles: [] }))).toEqual([]);
  });

  test('is written with one element per line', async () => {
    mockUpstream(answerByHandle);
    const { text } = await postBatch(await startProxy(), { handles: [A, B] });
    const lines = text.split('\n').slice(1, -1);
    expect(lines.map((line) => (JSON.parse(line.replace(/,$/, '')) as { handle: string }).handle)).toEqual([
      A,
      B,
    ]);
  });

  test('is compressed for a client that accepts gzip', async () => {
    mockUpstream(answerByHandle);
    const proxy = await startProxy();
    const handles = numbered(30);
    const { headers, body } = await postBatch(proxy, { handles }, { headers: { 'Accept-Encoding': 'gzip' } });
    expect(headers['content-encoding']).toBe('gzip');
    const identity = await postBatch(proxy, { handles });
    expect(gunzipSync(body).toString()).toBe(identity.text);
    expect(body.length).toBeLessThan(identity.body.length / 2);
  });

  test('is returned with Cache-Control: no-store and Vary: Accept-Encoding', async () => {
    mockUpstream(answerByHandle);
    const { headers } = await (await startProxy()).ask(batchTarget([A]));
    expect(headers['cache-control']).toBe('no-store');
    expect(headers.vary).toContain('Accept-Encoding');
  });

  test('returns the GET headers for HEAD without loading anything', async () => {
    const upstream = mockUpstream(answerByHandle);
    const proxy = await startProxy();
    const head = await proxy.ask(batchTarget([A]), { method: 'HEAD' });
    expect([head.status, head.text, upstream.asked]).toEqual([200, '', 0]);
    expect(head.headers['content-type']).toBe((await proxy.ask(batchTarget([A]))).headers['content-type']);
  });

  test('is readable by scripts from any origin (CORS)', async () => {
    mockUpstream(answerByHandle);
    const proxy = await startProxy();
    const Origin = 'https://app.example.org';
    const preflight = await proxy.ask('/api/resolve', {
      method: 'OPTIONS',
      headers: {
        Origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'content-type',
      },
    });
    expect(preflight.headers['access-control-allow-methods']).toContain('POST');
    const answer = await postBatch(proxy, { handles: [A] }, { headers: { Origin } });
    expect(answer.headers['access-control-allow-origin']).toBe(Origin);
  });

  test('is forwarded to the Handle server as a list request when the query contains prefix', async () => {
    const upstream = mockUpstream({ status: 200, body: { responseCode: 1, handles: [] } });
    const target = '/api/handles?prefix=21.T1&handle=21.T1/a';
    expect((await (await startProxy()).ask(target)).text).toContain('"handles":[]');
    expect(upstream.targets).toEqual([target]);
  });

  test('is not returned when the path contains a handle, which takes precedence over the query', async () => {
    mockUpstream(recordOf(VALUES));
    const { text } = await (await startProxy()).ask(`${PATH}?handle=21.T1/b`);
    expect(JSON.parse(text)).toMatchObject({ responseCode: 1, handle: HANDLE });
  });

  test('is rejected without an upstream request without the plugin', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy({}, { plugins: PLUGINS.filter(({ name }) => name !== 'batch') });
    expect((await proxy.ask(batchTarget([A]))).status).toBe(400);
    expect((await postBatch(proxy, { handles: [A] })).status).toBe(404);
    expect((await proxy.ask('/openapi.json')).text).not.toContain('/api/resolve');
    expect(upstream.asked).toBe(0);
  });

  test('appears in the metrics as one request, with one result per handle', async () => {
    mockUpstream(answerByHandle);
    const proxy = await startProxy();
    await proxy.ask(`/api/handles/${A}`);
    await postBatch(proxy, { handles: [A, B, ''] });
    const metrics = await metricsOf(proxy);
    expect(metrics).toContain(
      'handle_proxy_requests_total{interface="record",result="batch",status="200"} 1',
    );
    for (const result of ['hit', 'miss', 'invalid'])
      expect(metrics).toContain(`handle_proxy_batch_handles_total{result="${result}"} 1`);
  });
});
