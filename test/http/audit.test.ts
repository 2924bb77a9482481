// The staleness audit compares cache entries with the Handle server's records after hits and writes.
import request from 'supertest';
import { describe, expect, it, vi } from 'vitest';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { fixed } from '../support/fixed.js';
import { gate } from '../support/gate.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { PATH, mockUpstream, notFound, recordOf, urlValue } from '../support/upstream.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const old = recordOf([urlValue('https://example.org/old')]);
const fresh = recordOf([urlValue('https://example.org/new')]);
const write = { method: 'PUT', body: '[]' };

const startAudited = (env: Record<string, string> = {}): Promise<Proxy> =>
  startProxy({ AUDIT_HITS: '1', ...env });

const metricsOf = async (proxy: Proxy): Promise<string> =>
  (await request(proxy.app.admin).get('/metrics')).text;

/** Returns the non-zero audit counts, keyed by `sample result`. */
async function auditsOf(proxy: Proxy): Promise<Record<string, number>> {
  const lines = (await metricsOf(proxy)).matchAll(
    /^handle_proxy_audit_total\{sample="(.+)",result="(.+)"\} ([1-9]\d*)/gm,
  );
  return Object.fromEntries(
    [...lines].map(([, sample = '', result = '', count]) => [`${sample} ${result}`, Number(count)]),
  );
}

const expectAudits = (proxy: Proxy, audits: Record<string, number>): Promise<void> =>
  expect.poll(() => auditsOf(proxy)).toEqual(audits);

describe('audit of hits', () => {
  it('counts each hit once as equal if the record at the Handle server is equal', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startAudited();
    await proxy.ask(PATH);
    await expectAudits(proxy, {});
    const targets = [PATH, PATH, `${PATH}?pretty`, `${PATH}?pretty`];
    for (const target of targets) await proxy.ask(target);
    await expectAudits(proxy, { 'hit equal': targets.length });
    expect(upstream.asked).toBe(1 + targets.length);
  });

  it.each([
    ['redirect', '/21.T11998/abc'],
    ['batch', '/api/handles?handle=21.T11998%2Fabc'],
  ])('includes hits from a %s', async (_what, target) => {
    mockUpstream(old);
    const proxy = await startAudited();
    await proxy.ask(PATH);
    expect((await proxy.ask(target)).status).toBeLessThan(400);
    await expect.poll(async () => (await auditsOf(proxy))['hit equal']).toBeGreaterThan(0);
  });

  it('does not extend the TTL of an equal entry', async () => {
    mockUpstream(old);
    const proxy = await startAudited();
    await proxy.ask(PATH);
    proxy.pass(60_000);
    await proxy.ask(`${PATH}?pretty`);
    await expectAudits(proxy, { 'hit equal': 1 });
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit; ttl=3540');
  });

  it('counts a hit as older-within-ttl after a write that bypassed the proxy, and replaces the entry', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startAudited(fixed({ audit: { readsPerSecond: 1 } }));
    await proxy.ask(PATH);
    upstream.answers(fresh);
    proxy.pass(90_000);
    expect((await proxy.ask(PATH)).text).toContain('/old');
    await expect.poll(() => auditsOf(proxy)).toMatchObject({ 'hit older-within-ttl': 1 });
    expect(await metricsOf(proxy)).toContain('handle_proxy_audit_stale_age_seconds_sum 90\n');
    await expect.poll(async () => (await proxy.ask(PATH)).text).toContain('/new');
  });

  it('counts a hit as older-within-ttl after a deletion that bypassed the proxy', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startAudited(fixed({ audit: { readsPerSecond: 1 } }));
    await proxy.ask(PATH);
    upstream.answers(notFound());
    await proxy.ask(PATH);
    await expect.poll(() => auditsOf(proxy)).toMatchObject({ 'hit older-within-ttl': 1 });
  });

  it('is inconclusive during a write', async () => {
    const upstream = mockUpstream(old);
    const { opened, open } = gate();
    const sent = mockWrites({ ...jsonAnswer(200, { responseCode: 1 }), after: opened });
    const proxy = await startAudited(fixed({ audit: { readsPerSecond: 1 } }));
    await proxy.ask(PATH);
    const writing = proxy.ask(PATH, write);
    await expect.poll(() => sent.length).toBe(1);
    upstream.answers(fresh);
    expect((await proxy.ask(PATH)).text).toContain('/old');
    await expect.poll(() => auditsOf(proxy)).toMatchObject({ 'hit inconclusive': 1 });
    open();
    await writing;
  });

  it('is inconclusive if a write is acknowledged between the hit and the comparison', async () => {
    const { opened, open } = gate();
    const upstream = mockUpstream(old);
    mockWrites();
    const proxy = await startAudited(fixed({ audit: { readsPerSecond: 1 } }));
    await proxy.ask(PATH);
    upstream.answers({ ...fresh, after: opened });
    await proxy.ask(PATH);
    await expect.poll(() => upstream.asked).toBe(2);
    proxy.pass(1);
    await proxy.ask(PATH, write);
    open();
    await expect.poll(() => auditsOf(proxy)).toMatchObject({ 'hit inconclusive': 1 });
  });

  it('is inconclusive if the Handle server fails', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startAudited(fixed({ audit: { readsPerSecond: 1 } }));
    await proxy.ask(PATH);
    upstream.answers({ status: 500, body: 'broken' });
    expect((await proxy.ask(PATH)).status).toBe(200);
    await expect.poll(() => auditsOf(proxy)).toMatchObject({ 'hit inconclusive': 1 });
  });

  it('reports a missed invalidation as older-after-acknowledged-write', async () => {
    vi.spyOn(MemoryStore.prototype, 'applyChange').mockImplementation(() => undefined);
    const upstream = mockUpstream(old);
    mockWrites();
    const proxy = await startAudited(fixed({ audit: { readsPerSecond: 1 } }));
    await proxy.ask(PATH);
    proxy.pass(10);
    await proxy.ask(PATH, write);
    upstream.answers(fresh);
    proxy.pass(10);
    expect((await proxy.ask(PATH)).text).toContain('/old');
    await expect.poll(() => auditsOf(proxy)).toMatchObject({ 'hit older-after-acknowledged-write': 1 });
  });

  it('reads at most `readsPerSecond` handles per second', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startAudited(fixed({ audit: { readsPerSecond: 2 } }));
    await proxy.ask(PATH);
    for (let times = 0; times < 10; times++) await proxy.ask(PATH);
    await expect.poll(() => auditsOf(proxy)).toMatchObject({ 'hit equal': 2 });
    expect((await auditsOf(proxy))['hit skipped']).toBeGreaterThanOrEqual(8);
    expect(upstream.asked).toBe(3);
    proxy.pass(1000);
    for (let times = 0; times < 10; times++) await proxy.ask(PATH);
    await expect.poll(() => auditsOf(proxy)).toMatchObject({ 'hit equal': 4 });
  });

  it('is disabled by default', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startProxy();
    for (let times = 0; times < 10; times++) await proxy.ask(PATH);
    await expectAudits(proxy, {});
    expect(upstream.asked).toBe(1);
  });

  it('reports in GET /stats how many hits in the last 24 hours were equal to the Handle server’s record', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startAudited(fixed({ audit: { readsPerSecond: 1 } }));
    const audit = async () =>
      ((await request(proxy.app.admin).get('/stats')).body as { audit: unknown }).audit;
    expect(await audit()).toEqual({ compared: 0, equal: 0 });
    await proxy.ask(PATH);
    await proxy.ask(PATH);
    await expect.poll(audit).toEqual({ compared: 1, equal: 1 });
    upstream.answers(fresh);
    proxy.pass(1000);
    await proxy.ask(PATH);
    await expect.poll(audit).toEqual({ compared: 2, equal: 1 });
    proxy.pass(24 * 3_600_000);
    expect(await audit()).toEqual({ compared: 0, equal: 0 });
  });
});

describe('audit of writes', () => {
  it('counts a write as equal if no entry remains, without querying the Handle server', async () => {
    const upstream = mockUpstream(old);
    mockWrites();
    const proxy = await startProxy({ AUDIT_WRITES: '1' });
    await proxy.ask(PATH);
    await proxy.ask(PATH, write);
    await expectAudits(proxy, { 'write equal': 1 });
    expect(upstream.asked).toBe(1);
  });

  it('compares the entry that a reader has loaded since the write', async () => {
    const upstream = mockUpstream(old);
    mockWrites();
    const proxy = await startProxy({ AUDIT_WRITES: '1' });
    await proxy.ask(PATH, write);
    proxy.pass(1);
    await proxy.ask(PATH);
    await expectAudits(proxy, { 'write equal': 1 });
    expect(upstream.asked).toBe(2);
  });

  it('reports a missed invalidation even if no reader requests the record', async () => {
    vi.spyOn(MemoryStore.prototype, 'applyChange').mockImplementation(() => undefined);
    const upstream = mockUpstream(old);
    mockWrites();
    const proxy = await startProxy({ AUDIT_WRITES: '1' });
    await proxy.ask(PATH);
    proxy.pass(10);
    await proxy.ask(PATH, write);
    upstream.answers(fresh);
    proxy.pass(10);
    await expectAudits(proxy, { 'write older-after-acknowledged-write': 1 });
  });

  it('ignores a write that the Handle server refuses', async () => {
    mockUpstream(old);
    mockWrites(jsonAnswer(403, { responseCode: 400 }));
    const proxy = await startProxy({ AUDIT_WRITES: '1' });
    await proxy.ask(PATH, write);
    await expectAudits(proxy, {});
  });
});
