// Reads that bypass Express are counted in the statistics.
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { openSocket } from '../support/raw-socket.js';
import { HANDLE, PATH, mockUpstream, notFound, recordOf } from '../support/upstream.js';

useNock();

async function resultsOf(proxy: Proxy): Promise<unknown> {
  const { body } = (await request(proxy.app.admin).get('/stats').expect(200)) as {
    body: { requests: { byResult: unknown } };
  };
  return body.requests.byResult;
}

const REFUSED = { status: 403, body: { responseCode: 400, message: 'no', handle: HANDLE } };
const BROKEN = { status: 500, body: { responseCode: 2, message: 'broken', handle: HANDLE } };

describe('reporting of reads', () => {
  test.each([
    ['a record', recordOf(), 200, { miss: 1 }],
    ['a missing record', notFound(), 404, { miss: 1 }],
    ['a refusal', REFUSED, 403, { refused: 1 }],
    ['a failure', BROKEN, 500, { error: 1 }],
  ])('counts %s once, with one upstream request', async (_what, answer, status, results) => {
    const upstream = mockUpstream(answer);
    const proxy = await startProxy();
    expect((await proxy.ask(PATH)).status).toBe(status);
    expect(upstream.asked).toBe(1);
    await expect.poll(() => resultsOf(proxy)).toEqual(results);
  });

  test('counts each repeat of `action=api` for the interface that the first one counted for', async () => {
    mockUpstream(recordOf());
    const proxy = await startProxy();
    for (let at = 0; at < 4; at++) await proxy.ask(`/${HANDLE}?action=api`);
    const readHits = async (): Promise<string[]> => {
      const { text } = await request(proxy.app.admin).get('/metrics').expect(200);
      return text.match(/^handle_proxy_requests_total\{.*result="hit",status="200"\} [1-9]\d*$/gm) ?? [];
    };
    await expect
      .poll(readHits)
      .toEqual(['handle_proxy_requests_total{interface="redirect",result="hit",status="200"} 3']);
  });

  test('reports a stale response as stale', async () => {
    const upstream = mockUpstream(recordOf());
    const proxy = await startProxy();
    await proxy.ask(PATH);
    upstream.answers(BROKEN);
    proxy.pass(3_600_001);
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('detail=error');
    await expect.poll(() => resultsOf(proxy)).toEqual({ miss: 1, stale: 1 });
  });

  test('counts a read whose client disconnects during the load, which still stores the record', async () => {
    let answer = (): void => undefined;
    const after = new Promise<void>((resolve) => (answer = resolve));
    const upstream = mockUpstream({ ...recordOf(), after });
    const proxy = await startProxy();
    const socket = await openSocket(proxy.url);
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await expect.poll(() => upstream.asked).toBe(1);
    socket.resetAndDestroy();
    await expect.poll(() => resultsOf(proxy)).toEqual({ local: 1 });
    answer();
    await expect.poll(async () => (await proxy.ask(PATH)).headers['cache-status']).toContain('; hit');
    expect(upstream.asked).toBe(1);
  });
});
