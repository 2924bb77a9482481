import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import request from 'supertest';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import type { Plugin } from '../../src/plugin.js';
import { useNock } from '../support/nock.js';
import { importLines, recordLine } from '../support/record-files.js';
import { HANDLE, PATH, mockUpstream, notFound } from '../support/upstream.js';
import { startProxy } from '../support/proxy.js';

useNock();

describe('admin API', () => {
  test('shows the cached entries of a handle with their age and TTL', async () => {
    mockUpstream();
    const proxy = await startProxy();
    const look = async (): Promise<unknown> =>
      (await request(proxy.app.admin).get('/cache').query({ handle: HANDLE }).expect(200)).body as unknown;
    expect(await look()).toEqual({ handle: HANDLE, cached: false, copies: [] });
    await proxy.ask(PATH);
    proxy.pass(10_000);
    await proxy.ask(PATH);
    await proxy.ask(PATH);
    const copy = { tier: 'memory', kind: 'found', state: 'fresh', hits: 2 };
    expect(await look()).toMatchObject({
      cached: true,
      copies: [{ ...copy, ageSeconds: 10, ttlSeconds: 3590, staleIfErrorSeconds: 89_990 }],
    });
    proxy.pass(3_600_000);
    expect(await look()).toMatchObject({ copies: [{ state: 'stale', ttlSeconds: 0, hits: 2 }] });
  });

  test('says under a name that is not loopback that it needs a token there', async () => {
    const { app } = await startProxy();
    const { text } = await request(app.admin).get('/stats').set('Host', 'proxy.example.org').expect(403);
    expect(text).toContain('set admin.token');
  });

  test('counts requests, results and top handles in the statistics', async () => {
    const upstream = mockUpstream((target) =>
      target.includes('none') ? notFound(`${HANDLE}-none`) : recordOrFail(target),
    );
    const proxy = await startProxy();
    for (let times = 0; times < 5; times++) await proxy.ask(PATH);
    await proxy.ask(`${PATH}-none`);
    await proxy.ask(`${PATH}-broken`);
    proxy.pass(1000);
    const { body } = (await request(proxy.app.admin).get('/stats').expect(200)) as { body: object };
    expect(upstream.asked).toBeGreaterThanOrEqual(3);
    expect(body).toMatchObject({
      requests: { total: 7, hits: 4, misses: 2, errors: 1, stale: 0, hitRatio: 0.6667 },
      upstream: { failures: 1, inFlight: 0, queued: 0, servers: [{ breaker: 'closed' }] },
      redis: { state: 'disabled' },
      logLevel: 'silent',
      process: { pid: process.pid },
    });
    expect(body).toHaveProperty('topHandles.0', { name: HANDLE, count: 5 });
    expect(body).toHaveProperty('topMisses', [
      { name: HANDLE, count: 1 },
      { name: `${HANDLE}-none`, count: 1 },
    ]);
    expect(JSON.stringify(body)).toContain('UPSTREAM_FAILED');
  });

  const recordOrFail = (target: string) =>
    target.includes('broken')
      ? { status: 500, body: { responseCode: 2, message: 'broken' } }
      : { status: 200, body: { responseCode: 1, handle: HANDLE, values: [] } };

  test('lists a relayed Handle server 5xx response among the recent errors', async () => {
    mockUpstream({ status: 500, body: { responseCode: 2 } });
    const proxy = await startProxy();
    expect((await proxy.ask(`${PATH}?publicOnly=false`)).status).toBe(500);
    const { recentErrors } = await proxy.app.operations.stats();
    expect(recentErrors).toMatchObject([{ message: `500 for ${HANDLE}` }]);
  });

  test('imports many records in slices, yielding to the event loop', async () => {
    const proxy = await startProxy();
    const lines = Array.from({ length: 5000 }, (_, at) => recordLine(`21.T11998/${at}`));
    const { mock } = vi.spyOn(MemoryStore.prototype, 'restore');
    onTestFinished(() => {
      vi.restoreAllMocks();
    });
    let [most, before, isImported] = [0, 0, false];
    const countTurn = (): void => {
      most = Math.max(most, mock.calls.length - before);
      before = mock.calls.length;
      if (!isImported) setImmediate(countTurn);
    };
    setImmediate(countTurn);
    expect(await importLines(proxy, lines)).toBe(5000);
    isImported = true;
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThan(500);
  });

  test('purges many handles in groups, yielding to the event loop', async () => {
    const { app } = await startProxy();
    const handles = Array.from({ length: 10_000 }, (_, at) => `21.T11998/${at}`);
    let turns = 0;
    let isPurged = false;
    const countTurn = (): void => {
      turns++;
      if (!isPurged) setImmediate(countTurn);
    };
    setImmediate(countTurn);
    await app.operations.purge({ handles, isSoft: false });
    isPurged = true;
    expect(turns).toBeGreaterThan(40);
  });

  test('records large purges in groups, so that two at a time do not fill a queue for changes', async () => {
    const held = { now: 0, most: 0 };
    const recorder: Plugin = {
      name: 'recorder',
      isEnabled: () => true,
      load: () =>
        Promise.resolve({
          start: () => ({
            async changed(made) {
              held.now += made.length;
              held.most = Math.max(held.most, held.now);
              await nextTurn();
              held.now -= made.length;
            },
          }),
        }),
    };
    const { app } = await startProxy({}, { plugins: [recorder] });
    const handles = Array.from({ length: 10_000 }, (_, at) => `21.T11998/${at}`);
    const purge = () => app.operations.purge({ handles, isSoft: false });
    await Promise.all([purge(), purge()]);
    expect(held.most).toBeGreaterThan(0);
    expect(held.most).toBeLessThanOrEqual(2000);
  });

  test('sets the log level at run time', async () => {
    const proxy = await startProxy();
    const answer = await request(proxy.app.admin).put('/log-level').send({ level: 'fatal' }).expect(200);
    expect(answer.body).toEqual({ level: 'fatal' });
    expect((await request(proxy.app.admin).get('/stats')).body).toMatchObject({ logLevel: 'fatal' });
  });

  test.each<[what: string, body: string | object]>([
    ['no target', {}],
    ['invalid JSON', '{"handle":'],
    ['a string', '"all"'],
    ['an empty handle', { handle: '' }],
    ['a handle without a slash', { handles: ['21.T1/a', 'nonsense'] }],
    ['an empty prefix, which would match everything', { prefix: '' }],
    ['an empty list', { handles: [] }],
    ['an overlong list', { handles: Array.from({ length: 10_001 }, () => 'a') }],
    ['all: false', { all: false }],
    ['two targets', { all: true, handle: '21.T1/a' }],
    ['soft as a string', { handle: '21.T1/a', soft: 'true' }],
    ['an overlong handle', { handle: '21.T1/'.padEnd(2049, 'x') }],
  ])('rejects a purge request with %s, and purges nothing', async (_what, body) => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    await proxy.ask(PATH);
    const answer = await request(proxy.app.admin)
      .post('/purge')
      .set('Content-Type', 'application/json')
      .send(body)
      .expect(400);
    expect(answer.body).toMatchObject({ code: 'ADMIN_BAD_BODY', status: 400 });
    await proxy.ask(PATH);
    expect(upstream.asked).toBe(1);
  });

  test('rejects a body that is not UTF-8', async () => {
    const proxy = await startProxy();
    const body = Buffer.from('{"handle":"21.T1/\u00e4"}', 'latin1');
    const answer = await request(proxy.app.admin)
      .post('/purge')
      .set('Content-Type', 'application/octet-stream')
      .send(body)
      .expect(400);
    expect(answer.body).toMatchObject({ code: 'ADMIN_BAD_BODY' });
  });

  test('accepts a compressed body', async () => {
    const proxy = await startProxy();
    await request(proxy.app.admin)
      .post('/purge')
      .set('Content-Type', 'application/octet-stream')
      .set('Content-Encoding', 'gzip')
      .send(gzipSync('{"all":true}'))
      .expect(200);
  });

  test('returns 400 for a path with invalid percent-encoding', async () => {
    const proxy = await startProxy();
    const answer = await request(proxy.app.admin).get('/status/%zz').expect(400);
    expect(answer.body).toMatchObject({ code: 'BAD_REQUEST' });
  });

  test('rejects an oversized body', async () => {
    const proxy = await startProxy();
    const handles = [`21.T1/${'x'.repeat(5_000_000)}`];
    const answer = await request(proxy.app.admin).post('/purge').send({ handles }).expect(413);
    expect(answer.body).toMatchObject({ code: 'BODY_TOO_LARGE' });
  });

  test('parses JSON with any Content-Type, as sent by `curl -d`', async () => {
    const proxy = await startProxy();
    await request(proxy.app.admin)
      .post('/purge')
      .set('Content-Type', 'application/x-www-form-urlencoded')
      .send('{"all":true}')
      .expect(200);
  });

  test.each(['/cache', '/cache?handle='])('returns 400 for %s, which names no handle', async (path) => {
    const proxy = await startProxy();
    const { body } = (await request(proxy.app.admin).get(path).expect(400)) as { body: unknown };
    expect(body).toMatchObject({ code: 'BAD_PARAMETER' });
  });
});
