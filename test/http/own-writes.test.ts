// A client with an HTTP cache, such as httplib2 or a browser, reads its own writes.
import { describe, expect, onTestFinished, test } from 'vitest';
import { Agent, interceptors } from 'undici';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream, notFound, recordOf, urlValue } from '../support/upstream.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const first = recordOf([urlValue('https://example.org/first')]);
const second = recordOf([urlValue('https://example.org/second')]);

async function start(env: Record<string, string> = {}) {
  const proxy = await startProxy(env);
  const statuses: number[] = [];
  // The inner agent sees only responses from the network, not those from the client's cache.
  const network = new Agent().compose(
    (dispatch) => (options, handler) =>
      dispatch(options, {
        onRequestStart: (...given) => handler.onRequestStart?.(...given),
        onResponseStart(controller, status, headers, text) {
          statuses.push(status);
          handler.onResponseStart?.(controller, status, headers, text);
        },
        onResponseData: (...given) => handler.onResponseData?.(...given),
        onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
        onResponseError: (...given) => handler.onResponseError?.(...given),
      }),
  );
  const client = network.compose(interceptors.cache());
  onTestFinished(() => client.close());
  const send = async (path: string, method = 'GET', body?: string) => {
    const answer = await client.request({ origin: proxy.url, path, method, body: body ?? null });
    return { status: answer.statusCode, text: await answer.body.text() };
  };
  return { send, statuses };
}

describe('client with an HTTP cache (RFC 9111)', () => {
  test.each(['', '?index=1', '?type=URL&pretty'])(
    'reads its own write immediately with the query "%s"',
    async (query) => {
      const upstream = mockUpstream(first);
      mockWrites(jsonAnswer(200, { responseCode: 1 }));
      const { send, statuses } = await start();
      for (let times = 0; times < 2; times++) expect((await send(PATH + query)).text).toContain('/first');
      expect(statuses).toEqual([200, 304]);
      upstream.answers(second);
      expect((await send(`${PATH}?overwrite=true`, 'PUT', '{"values":[]}')).status).toBe(200);
      expect((await send(PATH + query)).text).toContain('/second');
      expect(upstream.asked).toBe(2);
    },
  );

  test('reads a handle immediately after creating it', async () => {
    const upstream = mockUpstream(notFound());
    mockWrites(jsonAnswer(201, { responseCode: 1 }));
    const { send } = await start();
    for (let times = 0; times < 2; times++) expect((await send(PATH)).status).toBe(404);
    upstream.answers(first);
    expect((await send(`${PATH}?overwrite=false`, 'PUT', '{"values":[]}')).status).toBe(201);
    expect((await send(PATH)).text).toContain('/first');
  });
});
