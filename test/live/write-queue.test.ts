// More concurrent writes than upstream connections: the excess writes are queued.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberIn, numberedBody, putNumbered } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { startProxy } from '../support/proxy.js';

const demo = await startDemoServer();

describe('writes beyond the upstream connection limit', () => {
  test('are all sent, with the headers added by the proxy', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url, ...fixed({ upstream: { connections: 1 } }) });
    const paths = Array.from({ length: 8 }, (_, at) => `/api/handles/21.T11998/queued-${at}`);
    const statuses = await Promise.all(
      paths.map(async (path, at) => (await putNumbered(proxy.url, path, at + 1)).status),
    );
    expect(statuses).toEqual(paths.map(() => 201));
    expect(demo.lastRequest?.headers.via).toContain('handle-resolver-proxy');
    for (const [at, path] of paths.entries()) expect(numberIn(await proxy.ask(path))).toBe(at + 1);
  });

  test('are rejected before they obtain a permit when a chunked body is too large', async () => {
    const proxy = await startProxy({
      UPSTREAM_URL: demo.url,
      ...fixed({ upstream: { connections: 1 } }),
      HTTP_MAX_BODY_SIZE: '1KiB',
    });
    demo.hold.holdReplies('PUT');
    const first = putNumbered(proxy.url, '/api/handles/21.T11998/first', 1);
    await expect.poll(() => demo.hold.size).toBe(1);
    demo.reset();
    const headers = { ...WRITE_HEADERS, 'Transfer-Encoding': 'chunked' };
    const body = numberedBody(2) + ' '.repeat(2000);
    const second = await proxy.ask('/api/handles/21.T11998/second', { method: 'PUT', headers, body });
    expect(second.status).toBe(413);
    demo.hold.sendHeld('PUT');
    expect((await first).status).toBe(201);
    expect(demo.askedFor('21.T11998/second')).toBe(0);
  });
});
