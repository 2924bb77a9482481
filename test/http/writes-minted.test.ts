// Minting a handle invalidates the negative-cache entry of its name.
import { gzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { type MockUpstream, mockUpstream, notFound, recordOf } from '../support/upstream.js';
import { JSON_HEADERS, type WriteAnswer, mockWrites } from '../support/writes.js';

useNock();

const MINTED = '21.T11998/3f0c';
const MINTED_PATH = `/api/handles/${MINTED}`;
const PREFIX_PATH = '/api/handles/21.T11998/';
const BODY = `{"responseCode":1,"handle":"${MINTED}"}`;

const minting = (body: string, status = 201): WriteAnswer => ({ status, body, rawHeaders: JSON_HEADERS });

/** Caches the minted name as not found, then creates the handle at the server. */
async function notFoundBefore(answer: WriteAnswer): Promise<{ upstream: MockUpstream; proxy: Proxy }> {
  const upstream = mockUpstream(notFound(MINTED));
  mockWrites(answer);
  const proxy = await startProxy();
  expect((await proxy.ask(MINTED_PATH)).status).toBe(404);
  upstream.answers(recordOf(undefined, MINTED));
  return { upstream, proxy };
}

describe('minted handle', () => {
  test.each([
    ['mintNewSuffix=true', BODY],
    ['overwrite=true&mintNewSuffix=TRUE', BODY],
    ['mintNewSuffix=true&pretty', JSON.stringify(JSON.parse(BODY), null, 2)],
    ['mintNewSuffix=true&callback=f', `f(${BODY});`],
  ])('is found immediately after PUT ?%s', async (query, body) => {
    const { upstream, proxy } = await notFoundBefore(minting(body));
    const { status, text } = await proxy.ask(`${PREFIX_PATH}?${query}`, { method: 'PUT', body: '[]' });
    expect([status, text]).toEqual([201, body]);
    expect((await proxy.ask(MINTED_PATH)).status).toBe(200);
    expect(upstream.asked).toBe(2);
  });

  test('is found immediately after a compressed response that names it', async () => {
    const rawHeaders = [...JSON_HEADERS, 'Content-Encoding', 'gzip'];
    const { proxy } = await notFoundBefore({ status: 201, body: gzipSync(BODY), rawHeaders });
    const headers = { 'Accept-Encoding': 'gzip' };
    const written = await proxy.ask(`${PREFIX_PATH}?mintNewSuffix=true`, {
      method: 'PUT',
      body: '[]',
      headers,
    });
    expect(written.status).toBe(201);
    expect((await proxy.ask(MINTED_PATH)).status).toBe(200);
  });

  test('is found by a subscriber to changes', async () => {
    const { proxy } = await notFoundBefore(minting(BODY));
    const found: number[] = [];
    proxy.app.context.hooks.changed.push(async () => void found.push((await proxy.ask(MINTED_PATH)).status));
    await proxy.ask(`${PREFIX_PATH}?mintNewSuffix=true`, { method: 'PUT', body: '[]' });
    expect(found).toEqual([200]);
  });

  test('is not to be created again if its invalidation is unconfirmed', async () => {
    const { proxy } = await notFoundBefore(minting(BODY));
    const unconfirmed = new ServiceError('INVALIDATION_UNCONFIRMED', { retryAfterMs: 1000 });
    vi.spyOn(proxy.app.host.cache.store, 'forget').mockRejectedValue(unconfirmed);
    const answer = await proxy.ask(`${PREFIX_PATH}?mintNewSuffix=true`, { method: 'PUT', body: '[]' });
    expect(answer.status).toBe(503);
    expect(answer.headers).not.toHaveProperty('retry-after');
  });

  test('is found although the invalidation of the prefix is unconfirmed', async () => {
    const { proxy } = await notFoundBefore(minting(BODY));
    const unconfirmed = () => Promise.reject(new ServiceError('INVALIDATION_UNCONFIRMED'));
    const outcomes = { changed: unconfirmed, unchanged: unconfirmed, unknown: unconfirmed };
    const fence = { ...outcomes, extend: () => undefined };
    vi.spyOn(proxy.app.host.cache.store, 'fence').mockResolvedValue(fence);
    const answer = await proxy.ask(`${PREFIX_PATH}?mintNewSuffix=true`, { method: 'PUT', body: '[]' });
    expect(answer.status).toBe(503);
    expect((await proxy.ask(MINTED_PATH)).status).toBe(200);
  });

  test('remains in the negative cache when minting is refused', async () => {
    const body = '{"responseCode":402}';
    const { upstream, proxy } = await notFoundBefore(minting(body, 401));
    const answer = await proxy.ask(`${PREFIX_PATH}?mintNewSuffix=true`, { method: 'PUT', body: '[]' });
    expect([answer.status, answer.text]).toEqual([401, body]);
    expect((await proxy.ask(MINTED_PATH)).status).toBe(404);
    expect(upstream.asked).toBe(1);
  });
});

describe('response to a mint request', () => {
  test.each([
    ['is not JSON', '<h1>created</h1>'],
    ['is truncated', '{"responseCode":1,"handle":"21.T'],
    ['contains no handle', '{"responseCode":1}'],
    ['contains a non-string handle', '{"handle":7}'],
  ])('is relayed even when it %s', async (_what, body) => {
    const { proxy } = await notFoundBefore(minting(body));
    const answer = await proxy.ask(`${PREFIX_PATH}?mintNewSuffix=true`, { method: 'PUT', body: '[]' });
    expect([answer.status, answer.text]).toEqual([201, body]);
  });
});
