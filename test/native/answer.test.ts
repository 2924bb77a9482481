// Responses to native requests, from the cache that the record interface uses.
import { describe, expect, it } from 'vitest';
import { OP_FLAG } from '../../src/plugins/native/codec.js';
import { useNock } from '../support/nock.js';
import { PUBLIC, askNative, codeOf, indexesIn, textIn, ttlsIn } from '../support/native-messages.js';
import { STARTED_AT, startProxy } from '../support/proxy.js';
import { HANDLE, PATH, VALUES, mockUpstream, notFound, recordOf, urlValue } from '../support/upstream.js';

useNock();

const AUTH = PUBLIC | OP_FLAG.authoritative;
const BROKEN = { status: 500, body: '' };

describe('native resolution', () => {
  it('shares its load (single flight) and its entry with the record and redirect interfaces', async () => {
    const upstream = mockUpstream();
    const { app, ask } = await startProxy();
    const [, ...native] = await Promise.all([
      ask(PATH),
      askNative(app.native, HANDLE),
      askNative(app.native, HANDLE.toUpperCase(), { transport: 'udp' }),
    ]);
    expect(native.map(indexesIn)).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    await ask(`/${HANDLE}`);
    expect(upstream.targets.filter((target) => target === PATH)).toHaveLength(1);
  });

  it('echoes the requested spelling of the handle', async () => {
    mockUpstream();
    const { app } = await startProxy();
    const { body } = await askNative(app.native, HANDLE.toUpperCase());
    expect(body.kind === 'record' && body.handle.toString()).toBe(HANDLE.toUpperCase());
  });

  it("returns an expiration time twelve hours ahead of the proxy's clock", async () => {
    mockUpstream();
    const { app, pass } = await startProxy();
    pass(5_000);
    expect((await askNative(app.native, HANDLE)).header.expiration).toBe(STARTED_AT / 1000 + 5 + 43_200);
  });

  it('of an unknown handle is cached for cache.notFound.ttl (negative cache)', async () => {
    const upstream = mockUpstream(notFound());
    const { app, pass } = await startProxy({ CACHE_NOT_FOUND_TTL: '30s' });
    expect(codeOf(await askNative(app.native, HANDLE))).toBe(100);
    expect(codeOf(await askNative(app.native, HANDLE))).toBe(100);
    expect(upstream.asked).toBe(1);
    pass(31_000);
    await askNative(app.native, HANDLE);
    expect(upstream.asked).toBe(2);
  });

  it.each([
    ['an empty handle', ''],
    ['a handle of 2,049 bytes', `21.T1/${'a'.repeat(2043)}`],
    ['a handle of 100,000 bytes', `21.T1/${'a'.repeat(100_000)}`],
    ['a handle with a NUL', '21.T1/a\0b'],
  ])('returns code 100 without an upstream request for %s', async (_, handle) => {
    const upstream = mockUpstream();
    const { app } = await startProxy();
    expect(codeOf(await askNative(app.native, handle))).toBe(100);
    expect(upstream.asked).toBe(0);
  });

  it('returns all 2,501 values of a record', async () => {
    const values = Array.from({ length: 2501 }, (_, at) => ({ ...VALUES[0], index: at + 1 }));
    mockUpstream(recordOf(values));
    const { app } = await startProxy();
    expect(indexesIn(await askNative(app.native, HANDLE))).toHaveLength(2501);
  });

  it('returns code 2 for data in an unknown format, so that the client uses the Handle server', async () => {
    mockUpstream(recordOf([{ ...VALUES[0], data: { format: 'new', value: 'x' } }]));
    const { app } = await startProxy();
    expect(codeOf(await askNative(app.native, HANDLE))).toBe(2);
  });
});

describe('native resolution with the AUTH flag', () => {
  it('queries the Handle server and replaces the entry', async () => {
    const upstream = mockUpstream();
    const { app } = await startProxy();
    await askNative(app.native, HANDLE);
    upstream.answers(recordOf([urlValue('https://example.org/new')]));
    const fresh = await askNative(app.native, HANDLE, { flags: AUTH });
    expect(indexesIn(fresh)).toEqual([1]);
    expect(upstream.targets[1]).toContain('auth=true');
    expect(indexesIn(await askNative(app.native, HANDLE))).toEqual([1]);
    expect(upstream.asked).toBe(2);
  });

  it('sets the flag only in its own response', async () => {
    mockUpstream();
    const { app } = await startProxy();
    const [plain, fresh] = [
      await askNative(app.native, HANDLE),
      await askNative(app.native, HANDLE, { flags: AUTH }),
    ];
    expect(plain.header.flags & OP_FLAG.authoritative).toBe(0);
    expect(fresh.header.flags & OP_FLAG.authoritative).not.toBe(0);
  });

  it('evicts the entry of a record that the Handle server no longer has', async () => {
    const upstream = mockUpstream();
    const { app } = await startProxy();
    await askNative(app.native, HANDLE);
    upstream.answers(notFound());
    expect(codeOf(await askNative(app.native, HANDLE, { flags: AUTH }))).toBe(100);
    expect(codeOf(await askNative(app.native, HANDLE))).toBe(100);
  });

  it('never returns a stale entry', async () => {
    const upstream = mockUpstream();
    const { app } = await startProxy();
    await askNative(app.native, HANDLE);
    upstream.answers(BROKEN);
    expect(codeOf(await askNative(app.native, HANDLE, { flags: AUTH }))).toBe(2);
  });
});

describe('native resolution while the Handle server fails', () => {
  it('returns a stale entry', async () => {
    const upstream = mockUpstream();
    const { app, pass } = await startProxy();
    await askNative(app.native, HANDLE);
    pass(86_400_000);
    upstream.answers(BROKEN);
    expect(indexesIn(await askNative(app.native, HANDLE))).toEqual([1, 2, 3]);
  });

  it('gives the values of a stale entry no TTL, by any transport, and those of a fresh one theirs', async () => {
    const upstream = mockUpstream();
    const { app, pass } = await startProxy({ UPSTREAM_RETRY_AFTER: '0s' });
    for (const transport of ['tcp', 'udp', 'tunnel'] as const)
      expect(ttlsIn(await askNative(app.native, HANDLE, { transport }))).toEqual([86400, 86400, 86400]);
    pass(86_400_000);
    upstream.answers(BROKEN);
    for (const transport of ['tcp', 'udp', 'tunnel', 'tcp'] as const)
      expect(ttlsIn(await askNative(app.native, HANDLE, { transport }))).toEqual([0, 0, 0]);
  });

  it.each([
    ['fails', BROKEN],
    ['is busy', { status: 503, body: '' }],
    ['is busy by response code', { status: 503, body: { responseCode: 3, handle: HANDLE } }],
    ['is a backup that rejects requests', { status: 500, body: { responseCode: 7, handle: HANDLE } }],
    ['refuses with a protocol error', { status: 400, body: { responseCode: 4, message: 'x' } }],
    ['requires a login for public values', { status: 403, body: { responseCode: 402, handle: HANDLE } }],
    ['breaks the connection', { status: 0, body: '', error: 'ECONNRESET' }],
  ])('returns code 2 when the server %s, so that the client uses a different site', async (_, given) => {
    mockUpstream(given);
    const { app } = await startProxy();
    expect(codeOf(await askNative(app.native, HANDLE))).toBe(2);
  });
});

describe('native resolution that the Handle server rejects', () => {
  it('returns code 301 and the text of the server for a foreign prefix', async () => {
    mockUpstream({ status: 400, body: { responseCode: 301, message: 'elsewhere', handle: HANDLE } });
    const { app } = await startProxy();
    const response = await askNative(app.native, HANDLE);
    expect([codeOf(response), textIn(response)]).toEqual([301, 'elsewhere']);
  });

  it('returns referral values, or code 100 when the client follows no referral', async () => {
    const site = { index: 2, type: 'HS_SERV', data: { format: 'string', value: '0.NA/21.T2' }, ttl: 86400 };
    mockUpstream({ status: 300, body: { responseCode: 302, values: [site], handle: HANDLE } });
    const { app } = await startProxy();
    const { header, body } = await askNative(app.native, HANDLE);
    expect([header.responseCode, body.kind === 'referral' && body.values]).toEqual([302, [site]]);
    expect(codeOf(await askNative(app.native, HANDLE, { flags: PUBLIC | OP_FLAG.doNotRefer }))).toBe(100);
  });
});
