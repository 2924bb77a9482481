// The proxy loads records from a seed file at startup and serves them without a Handle server.
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { basic } from '../support/demo.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { fileOf, recordLine } from '../support/record-files.js';
import { PATH, HANDLE, mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

const LOGIN = { Authorization: basic('300:21.T11998/USER01', 'password') };

const broken = { status: 502, body: '<html>' };

const whenRead = (proxy: Proxy) => expect.poll(() => proxy.app.operations.inspect(HANDLE)).toHaveLength(1);

describe('proxy with a seed file and no upstream', () => {
  const OFFLINE = { UPSTREAM_URL: 'none' };

  test.each([
    ['plain', (text: string) => text],
    ['compressed', (text: string) => gzipSync(text)],
  ])('serves records from a %s seed file as fresh forever', async (_, pack) => {
    const SEED_FILE = fileOf(pack(`${recordLine(HANDLE)}\n`));
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE });
    await whenRead(proxy);
    proxy.pass(10 * 365 * 86_400_000);
    const { status, text, headers } = await proxy.ask(PATH);
    expect([status, text]).toEqual([200, expect.stringContaining('https://example.org/seed')]);
    expect(headers['cache-status']).toMatch(/^handle-resolver-proxy; hit; ttl=\d+$/);
    expect((await proxy.ask(`/${HANDLE}`)).status).toBe(302);
  });

  test('rejects reads of other handles, and all writes, as for a foreign prefix', async () => {
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE: fileOf(`${recordLine(HANDLE)}\n`) });
    await whenRead(proxy);
    const read = await proxy.ask('/api/handles/21.T11998/other');
    expect([read.status, JSON.parse(read.text)]).toMatchObject([400, { responseCode: 301 }]);
    const write = await proxy.ask(PATH, { method: 'PUT', headers: LOGIN, body: '{"values":[]}' });
    expect([write.status, JSON.parse(write.text)]).toMatchObject([400, { responseCode: 301 }]);
  });

  test.each([
    ['with a login', PATH, LOGIN],
    ['of private values, of which there are none', `${PATH}?publicOnly=false`, {}],
    ['of ePIC v2', `/api/v2/handles/${HANDLE}`, LOGIN],
  ])('answers a read %s as any other, because no server can check it', async (_, path, headers) => {
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE: fileOf(`${recordLine(HANDLE)}\n`) });
    await whenRead(proxy);
    const { status, text } = await proxy.ask(path, { headers });
    expect([status, text]).toEqual([200, expect.stringContaining('https://example.org/seed')]);
    const missing = await proxy.ask(path.replace(HANDLE, '21.T11998/other'), { headers });
    expect(missing.status).toBe(path.includes('v2') ? 404 : 400);
  });

  test.each([
    ['an authoritative read', ({ ask }: Proxy) => ask(`${PATH}?auth=true`)],
    ['an authoritative redirect', ({ ask }: Proxy) => ask(`/${HANDLE}?auth`)],
    ['a soft purge', ({ app }: Proxy) => app.operations.purge({ prefix: '', isSoft: true })],
  ])('serves a record after %s as before, because nothing could bring it back', async (_, act) => {
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE: fileOf(`${recordLine(HANDLE)}\n`) });
    await whenRead(proxy);
    await act(proxy);
    const onlyIfCached = { headers: { 'Cache-Control': 'only-if-cached' } };
    expect((await proxy.ask(PATH, onlyIfCached)).status).toBe(200);
    const { status, headers } = await proxy.ask(PATH);
    expect(status).toBe(200);
    expect(headers['cache-status']).toMatch(/^handle-resolver-proxy; hit; ttl=[1-9]\d+$/);
    const { resolver, refOf } = proxy.app.host;
    expect(resolver.fromMemory(refOf(HANDLE)), 'the next read needs no load').toBeDefined();
    expect((await proxy.ask(`${PATH}?auth=true`)).text).toContain('https://example.org/seed');
    await proxy.app.operations.purge({ handles: [HANDLE], isSoft: false });
    expect((await proxy.ask(PATH)).status, 'a purge still deletes it').toBe(400);
  });

  /** More prefixes than Redis lists, and than memory once had bans. */
  const others = Array.from({ length: 250 }, (_, at) => `99.${at}`);

  test('serves a record after purges of many other prefixes', async () => {
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE: fileOf(`${recordLine(HANDLE)}\n`) });
    await whenRead(proxy);
    for (const prefix of others) await proxy.app.operations.purge({ prefix: `${prefix}/`, isSoft: false });
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  test('serves a record next to a table of many moved prefixes, each of which is purged at the start', async () => {
    const upstreams = [
      { prefixes: ['21.T11998'], kind: 'none' },
      { prefixes: ['99.*'], kind: 'template', url: 'https://journal.example.org/{suffix}' },
    ];
    const lines = others.map((prefix) => `${prefix}/*,https://new.example.org/{suffix}`);
    const proxy = await startProxy({
      UPSTREAMS: JSON.stringify(upstreams),
      SEED_FILE: fileOf(`${recordLine(HANDLE)}\n`),
      MOVED_FILE: fileOf(`${lines.join('\n')}\n`),
    });
    await whenRead(proxy);
    expect((await proxy.ask(PATH)).status).toBe(200);
    expect((await proxy.ask('/99.7/a')).headers['location']).toBe('https://new.example.org/a');
  });

  test('serves a record whatever else clients read, because nothing could bring it back', async () => {
    const upstreams = [
      { prefixes: ['21.T11998'], kind: 'none' },
      { prefixes: ['99'], kind: 'template', url: 'https://journal.example.org/{suffix}' },
    ];
    const SEED_FILE = fileOf(`${recordLine(HANDLE)}\n`);
    const proxy = await startProxy({
      UPSTREAMS: JSON.stringify(upstreams),
      SEED_FILE,
      CACHE_MAX_BYTES: '64KiB',
    });
    await whenRead(proxy);
    const evicted = async (): Promise<number> => {
      const { values } = await proxy.metric('handle_proxy_cache_evictions_total');
      return values.find(({ labels }) => labels['store'] === 'found')?.value ?? 0;
    };
    // A name that is read again is no newcomer.
    for (let at = 0; (await evicted()) < 200; at++)
      for (let times = 0; times < 2; times++)
        expect((await proxy.ask(`/api/handles/99/${at}`)).status).toBe(200);
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  test('is not ready without records, and names them, when its seed file is not an export', async () => {
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE: fileOf('noise\n') });
    proxy.app.addStartChecks();
    const notReady = () => proxy.app.readiness.report().notReady;
    await expect.poll(notReady).not.toContain('seed');
    expect(notReady()).toEqual(['records']);
  });

  test('serves the first record of a seed file that an editor saved with a byte order mark', async () => {
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE: fileOf(`\uFEFF${recordLine(HANDLE)}\n`) });
    proxy.app.addStartChecks();
    await expect.poll(() => proxy.app.readiness.report().notReady).not.toContain('seed');
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  test('serves the records before a line that is longer than a record', async () => {
    const long = '21.T11998/LONG';
    const lines = [recordLine(HANDLE), recordLine(long, [urlValue('x'.repeat(20_000))])];
    const env = { ...OFFLINE, UPSTREAM_MAX_RECORD_SIZE: '1KiB' };
    const proxy = await startProxy({ ...env, SEED_FILE: fileOf(`${lines.join('\n')}\n`) });
    proxy.app.addStartChecks();
    await expect.poll(() => proxy.app.readiness.report().notReady).toEqual([]);
    expect((await proxy.ask(PATH)).status).toBe(200);
    expect(await proxy.app.operations.inspect(long)).toEqual([]);
  });

  test('loads the records around a value whose permissions are no text', async () => {
    const broken = [{ ...(urlValue('https://example.org/') as object), permissions: { toString: 1 } }];
    const lines = [recordLine('21.T11998/BROKEN', broken), recordLine(HANDLE)];
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE: fileOf(`${lines.join('\n')}\n`) });
    await whenRead(proxy);
    expect(await proxy.app.operations.inspect('21.T11998/BROKEN')).toEqual([]);
  });

  test('does not serve private values', async () => {
    const hidden = { ...(urlValue('https://example.org/secret') as object), index: 9, permissions: '1100' };
    const SEED_FILE = fileOf(
      `${recordLine(HANDLE, [urlValue('https://example.org/open'), hidden])}\nnoise\n`,
    );
    const proxy = await startProxy({ ...OFFLINE, SEED_FILE });
    await whenRead(proxy);
    const { text } = await proxy.ask(PATH);
    expect(text).toContain('/open');
    expect(text).not.toContain('secret');
  });
});

describe('proxy with a seed file and an upstream', () => {
  test('loads a seeded record from the upstream on first use, and serves it stale while the server fails', async () => {
    const upstream = mockUpstream(broken);
    const proxy = await startProxy({
      SEED_FILE: fileOf(`${recordLine(HANDLE)}\n`),
      UPSTREAM_RETRY_AFTER: '0s',
    });
    await whenRead(proxy);
    const { text, headers } = await proxy.ask(PATH);
    expect(text).toContain('/seed');
    expect(headers['cache-status']).toContain('detail=error');
    expect(headers.age).toBe('60');
    upstream.answers(recordOf([urlValue('https://example.org/live')]));
    expect((await proxy.ask(PATH)).text).toContain('/live');
  });
});
