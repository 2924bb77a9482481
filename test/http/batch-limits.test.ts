// A batch is rejected as a whole, is counted per handle, and uses a bounded share of upstream concurrency.
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { answerByHandle, batchTarget, elementsOf, numbered, postBatch } from '../support/batch.js';
import { fixed } from '../support/fixed.js';
import { gate } from '../support/gate.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { isWhole } from '../support/thorough.js';
import { mockUpstream } from '../support/upstream.js';

useNock();

const A = '21.T1/a';

describe('batch endpoint', () => {
  describe('request validation before any load', () => {
    test.each<[why: string, target: string, status: number, message: RegExp]>([
      [
        '101 handles in a GET',
        batchTarget(numbered(101)),
        413,
        /Too many handles in one request: 101; GET accepts at most 100, POST \/api\/resolve at most 1000/,
      ],
      ['auth=true', batchTarget([A], '&auth=true'), 400, /auth=true/],
      ['publicOnly=false', batchTarget([A], '&publicOnly=false'), 400, /publicOnly=false/],
      ['an invalid index', batchTarget([A], '&index=x'), 400, /index has to be a whole number/],
    ])('rejects %s', async (_why, target, status, message) => {
      const upstream = mockUpstream(answerByHandle);
      const answer = await (await startProxy()).ask(target);
      expect([answer.status, upstream.asked]).toEqual([status, 0]);
      expect(JSON.parse(answer.text)).toMatchObject({
        responseCode: 4,
        message: expect.stringMatching(message) as unknown,
      });
    });

    test.each<[why: string, body: string, status: number, message: RegExp]>([
      [
        '1,001 handles',
        JSON.stringify({ handles: numbered(1001) }),
        413,
        /Too many handles in one request: JSON with a list of more than 1000 elements/,
      ],
      ['a body that is not JSON', '{"handles":', 400, /not valid UTF-8 JSON/],
      ['a bare list', '["21.T1/a"]', 400, /give \{"handles": \["…"\]\}/],
      ['no handles', '{}', 400, /handles: /],
      ['a number in the handles', '{"handles":["21.T1/a",5]}', 400, /handles\.1: /],
      ['a misspelt member', '{"handles":["21.T1/a"],"types":["URL"]}', 400, /types/],
      ['null in the handles', '{"handles":[null]}', 400, /handles\.0: /],
      ['a handle instead of a list', '{"handles":"21.T1/a"}', 400, /handles: /],
      ['null', 'null', 400, /give \{"handles": \["…"\]\}/],
      ['no body', '', 400, /not valid UTF-8 JSON/],
      ['deeply nested lists', `{"handles":${'['.repeat(50_000)}${']'.repeat(50_000)}}`, 400, /64 levels/],
      ['nested lists', '{"handles":[[]]}', 400, /handles\.0: /],
      ['too many lists', `{"handles":[${'[0,0],'.repeat(600)}0]}`, 400, /more than 1210 values/],
      [
        'too many members',
        JSON.stringify(Object.fromEntries(numbered(1025).map((name) => [name, 0]))),
        400,
        /more than 1024 sequences of member names/,
      ],
      ['an invalid index', '{"handles":["21.T1/a"],"index":"1,2"}', 400, /index has to be a whole number/],
      // The cost of filtering is proportional to handles × values × filters.
      ['101 types', JSON.stringify({ handles: [A], type: numbered(101) }), 400, /type: /],
      [
        '101 indexes',
        JSON.stringify({ handles: [A], index: numbered(101).map((_, at) => at) }),
        400,
        /index: /,
      ],
      ['an oversized body', JSON.stringify({ handles: ['x'.repeat(1024 ** 2)] }), 413, /body too large/],
    ])('rejects a POST with %s', async (_why, body, status, message) => {
      const upstream = mockUpstream(answerByHandle);
      const answer = await (await startProxy()).ask('/api/resolve', { method: 'POST', body });
      expect([answer.status, upstream.asked]).toEqual([status, 0]);
      expect(JSON.parse(answer.text)).toMatchObject({
        responseCode: 4,
        message: expect.stringMatching(message) as unknown,
      });
    });

    test('rejects a compressed body that exceeds the limit after decompression', async () => {
      const upstream = mockUpstream(answerByHandle);
      const body = gzipSync(JSON.stringify({ handles: ['x'.repeat(10 * 1024 ** 2)] }));
      const headers = { 'Content-Encoding': 'gzip' };
      const answer = await (await startProxy()).ask('/api/resolve', { method: 'POST', headers, body });
      expect([answer.status, upstream.asked]).toEqual([413, 0]);
    });

    test.each(['Basic eDp5', 'Handle sessionId="1x"', 'Handle clientCert="true"'])(
      'rejects the credentials %s, which only single GETs accept',
      async (Authorization) => {
        const upstream = mockUpstream(answerByHandle);
        const proxy = await startProxy();
        const headers = { Authorization };
        const answers = [
          await proxy.ask(batchTarget([A]), { headers }),
          await postBatch(proxy, { handles: [A] }, { headers }),
        ];
        for (const { status, text, headers: got } of answers) {
          expect([status, got['cache-control']]).toEqual([400, 'no-store']);
          expect(text).toContain('A batch accepts no credentials');
        }
        expect(upstream.asked).toBe(0);
      },
    );

    test.each(['GET', 'HEAD', 'PUT', 'DELETE', 'TRACE'])(
      'rejects %s /api/resolve with 405',
      async (method) => {
        const upstream = mockUpstream();
        const answer = await (await startProxy()).ask('/api/resolve', { method });
        expect([answer.status, answer.headers.allow, upstream.asked]).toEqual([405, 'POST, OPTIONS', 0]);
      },
    );
  });

  test('accepts the maximum number of handles', async () => {
    mockUpstream(answerByHandle);
    const proxy = await startProxy();
    expect(elementsOf(await proxy.ask(batchTarget(numbered(100), '&publicOnly=true')))).toHaveLength(100);
    // The first hundred are cached by now; `included-records` and `live/batch-stream` load a thousand.
    const handles = isWhole ? numbered(1000) : Array(10).fill(numbered(100)).flat();
    expect(elementsOf(await postBatch(proxy, { handles }))).toHaveLength(1000);
  });

  test('loads a handle once when the batch repeats it a thousand times', async () => {
    const upstream = mockUpstream(answerByHandle);
    const elements = elementsOf(await postBatch(await startProxy(), { handles: Array(1000).fill(A) }));
    expect(new Set(elements.map(({ handle, status }) => `${status} ${handle}`))).toEqual(
      new Set([`200 ${A}`]),
    );
    expect([elements.length, upstream.asked]).toEqual([1000, 1]);
  });

  test('parses a JSON body sent with the form Content-Type of curl -d', async () => {
    mockUpstream(answerByHandle);
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    expect((await postBatch(await startProxy(), { handles: [A] }, { headers })).status).toBe(200);
  });

  describe('traffic limit', () => {
    const env = { TRAFFIC_RULES: JSON.stringify([{ name: 'all', limit: { perMinute: 10 } }]) };

    test('counts each handle of a batch', async () => {
      mockUpstream(answerByHandle);
      const proxy = await startProxy(env);
      expect((await proxy.ask(batchTarget(numbered(9)))).status).toBe(200);
      expect((await proxy.ask(`/api/handles/${A}`)).status).toBe(200);
      expect((await proxy.ask(`/api/handles/${A}`)).status).toBe(429);
    });

    test('rejects an oversized batch as a whole and accepts a smaller one', async () => {
      const upstream = mockUpstream(answerByHandle);
      const proxy = await startProxy(env);
      const refused = await postBatch(proxy, { handles: numbered(11) });
      expect([refused.status, refused.headers['retry-after'], upstream.asked]).toEqual([429, '6', 0]);
      expect((await postBatch(proxy, { handles: numbered(9) })).status).toBe(200);
      expect((await postBatch(proxy, { handles: [A] })).status).toBe(429);
      const { values } = await proxy.metric('handle_proxy_traffic_rule_requests_total');
      expect(values.find(({ labels }) => labels['result'] === 'limited')?.value).toBe(2);
    });

    test('is not charged a second time by a rule of prefixes that matches none of the handles', async () => {
      mockUpstream(answerByHandle);
      const rules = [
        { name: 'secret', match: { prefix: '21.SECRET' }, answer: 403 },
        { name: 'all', limit: { perMinute: 10 } },
      ];
      const proxy = await startProxy({ TRAFFIC_RULES: JSON.stringify(rules) });
      const answers = elementsOf(await postBatch(proxy, { handles: [...numbered(9), '21.SECRET/a'] }));
      expect(answers.map(({ status }) => status)).toEqual([...Array<number>(9).fill(200), 403]);
    });
  });

  describe('upstream concurrency limit', () => {
    test('gives one batch at most a quarter of upstream.concurrency while single reads proceed', async () => {
      const held = gate();
      const upstream = mockUpstream((target) => ({
        ...answerByHandle(target),
        ...(!target.includes('single') && { after: held.opened }),
      }));
      const proxy = await startProxy({ UPSTREAM_CONCURRENCY: '16' });
      const batch = postBatch(proxy, { handles: numbered(50) });
      await expect.poll(() => upstream.asked).toBe(4);
      expect((await proxy.ask('/api/handles/21.T1/single')).status).toBe(200);
      expect(upstream.asked).toBe(5);
      held.open();
      expect(elementsOf(await batch)).toHaveLength(50);
      expect(upstream.asked).toBe(51);
    });

    test('shares at most half of upstream.concurrency among all batches', async () => {
      const held = gate();
      const upstream = mockUpstream((target) => ({
        ...answerByHandle(target),
        ...(!target.includes('single') && { after: held.opened }),
      }));
      // The rest waits for its turn in the batches, and so does not overflow the queue of the limiter.
      const proxy = await startProxy({ UPSTREAM_CONCURRENCY: '16', ...fixed({ upstream: { queue: 8 } }) });
      const batches = ['21.T1', '21.T2', '21.T3', '21.T4', '21.T5', '21.T6'].map((prefix) =>
        postBatch(proxy, { handles: numbered(20, prefix) }),
      );
      await expect.poll(() => upstream.asked).toBe(8);
      expect((await proxy.ask('/api/handles/21.T1/single')).status).toBe(200);
      expect(upstream.asked).toBe(9);
      held.open();
      for (const batch of batches)
        expect(elementsOf(await batch).map(({ status }) => status)).toEqual(Array(20).fill(200));
      expect(upstream.asked).toBe(121);
    });

    test('does not delay loads that follow cached elements', async () => {
      const held = gate();
      const upstream = mockUpstream((target) => ({
        ...answerByHandle(target),
        ...(target.includes('slow') && { after: held.opened }),
      }));
      const proxy = await startProxy({ UPSTREAM_CONCURRENCY: '16' });
      const known = numbered(20);
      await postBatch(proxy, { handles: known });
      const batch = postBatch(proxy, {
        handles: ['21.T1/slow0', ...known, '21.T1/slow1', ...known, '21.T1/slow2'],
      });
      // All three loads run concurrently despite the cache hits between them.
      await expect.poll(() => upstream.asked).toBe(23);
      held.open();
      expect(elementsOf(await batch)).toHaveLength(43);
    });
  });
});
