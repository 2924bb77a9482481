// A client may accept a stored response only (RFC 9111 section 5.2.1.7).
import { describe, expect, test, vi } from 'vitest';
import { toBytes } from '../../src/handle/bytes.js';
import { handleRef } from '../../src/handle/handle.js';
import { createLoneResolver, startMemory } from '../support/lone-resolver.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

const headers = { 'Cache-Control': 'max-stale=0, Only-If-Cached', Accept: 'application/json' };
const HOUR = 3_600_000;

describe('Cache-Control: only-if-cached', () => {
  test.each([
    ['a record', PATH],
    ['a redirect', `/${HANDLE}`],
    ['a record read from the server', `${PATH}?auth=true`],
    ['private values', `${PATH}?publicOnly=false`],
    ['a list', '/api/handles?prefix=21.T11998'],
  ])(
    'is answered with 504, without a request to the Handle server, for %s that is not cached',
    async (_what, path) => {
      const upstream = mockUpstream();
      const proxy = await startProxy();
      const { status, text, headers: sent } = await proxy.ask(path, { headers });
      expect([status, JSON.parse(text)]).toMatchObject([504, { code: 'NOT_CACHED' }]);
      expect([sent['cache-control'], sent['retry-after']]).toEqual(['no-store', undefined]);
      expect(upstream.asked).toBe(0);
    },
  );

  test('is answered from memory for a record that is cached', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    await proxy.ask(PATH);
    for (let count = 0; count < 3; count++) {
      expect((await proxy.ask(PATH, { headers })).status).toBe(200);
      expect((await proxy.ask(PATH, { headers, method: 'HEAD' })).status).toBe(200);
    }
    expect((await proxy.ask(`/${HANDLE}`, { headers })).status).toBe(302);
    expect((await proxy.ask(`${PATH}?publicOnly=false`, { headers })).status).toBe(504);
    expect((await proxy.ask(PATH, { headers: { ...headers, Authorization: 'Basic eDp5' } })).status).toBe(
      504,
    );
    expect(upstream.targets.filter((target) => target.includes(HANDLE))).toHaveLength(1);
  });

  test('is answered with 504 for an expired record, which other clients still load', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    await proxy.ask(PATH);
    proxy.pass(HOUR + 1000);
    expect((await proxy.ask(PATH, { headers })).status).toBe(504);
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('fwd=miss');
    expect(upstream.asked).toBe(2);
  });

  test('is answered from the shared tier', async () => {
    const now = () => 1_000_000;
    const load = vi.fn(() =>
      Promise.resolve({ kind: 'found' as const, values: toBytes('["kept"]'), ttls: [60] }),
    );
    const { resolver } = createLoneResolver({ now, load, stored: startMemory(now) });
    const handle = handleRef(HANDLE, false);
    const read = { authoritative: false, onlyIfCached: true };
    await expect(resolver.resolve(handle, read)).rejects.toMatchObject({ code: 'NOT_CACHED' });
    await resolver.resolve(handle, { authoritative: false });
    expect(await resolver.resolve(handle, read)).toMatchObject({ kind: 'entry', from: 'memory' });
    expect(load).toHaveBeenCalledOnce();
  });

  test('does not wait for the load of another client', async () => {
    let release: (value: unknown) => void = () => undefined;
    const upstream = mockUpstream();
    upstream.answers({
      status: 404,
      body: { responseCode: 100 },
      after: new Promise((resolve) => (release = resolve)),
    });
    const proxy = await startProxy();
    const loading = proxy.ask(PATH);
    await expect.poll(() => upstream.asked).toBe(1);
    expect((await proxy.ask(PATH, { headers })).status).toBe(504);
    release(undefined);
    expect((await loading).status).toBe(404);
  });

  test('is ignored for a write', async () => {
    mockUpstream();
    const sent = mockWrites({ status: 200, body: '{"responseCode":1}' });
    const proxy = await startProxy();
    const write = { method: 'PUT', headers: { ...headers, 'Content-Type': 'application/json' }, body: '[]' };
    expect((await proxy.ask(PATH, write)).status).toBe(200);
    expect(sent).toHaveLength(1);
  });
});
