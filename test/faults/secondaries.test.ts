// Secondaries: anonymous reads use a working server, all other requests only the primary.
import { join } from 'node:path';
import '../support/real-sockets.js';
import { afterEach, describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { newFolder } from '../support/folder.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const HOUR = 3_600_000;
const LAG = 60_000;
const RETRY_AFTER = 5000;
const PREFIX = '/api/handles/21.T11998';
const PATH = `${PREFIX}/kept`;

const primary = await startDemoServer();
const secondary = await startDemoServer();
const another = await startDemoServer();

const start = (env: Record<string, string> = {}): Promise<Proxy> =>
  startProxy({
    UPSTREAM_URL: primary.url,
    UPSTREAM_SECONDARIES: secondary.url,
    DELETION_HANDLES: 'true',
    ...env,
  });

/** Stores newer records on the primary than on the secondary. */
function prepare(): void {
  for (const at of ['kept', 'other', 'third']) {
    primary.put(`21.T11998/${at}`, numbered(2));
    secondary.put(`21.T11998/${at}`, numbered(1));
  }
}

afterEach(() => {
  for (const server of [primary, secondary, another]) {
    server.heal();
    server.reset();
  }
});

describe('read with secondaries (failover)', () => {
  test('uses the primary while the primary responds', async () => {
    prepare();
    const proxy = await start();
    expect(numberIn(await proxy.ask(PATH))).toBe(2);
    expect([primary.asked, secondary.asked]).toEqual([1, 0]);
  });

  test.each(['reset', 'refuse', 'error', 'html', 'wrong-handle'] as const)(
    'uses the secondary when the primary fails (%s)',
    async (fault) => {
      prepare();
      const proxy = await start();
      primary.fail(fault);
      expect(numberIn(await proxy.ask(PATH))).toBe(1);
    },
  );

  test('uses the secondary when the primary has hung for too long', async () => {
    prepare();
    const proxy = await start(fixed({ upstream: { failoverAfterMs: 100 } }));
    primary.fail('hang');
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
    expect(primary.asked).toBe(1);
    await proxy.ask(`${PREFIX}/other`);
    expect(primary.asked, 'the next one does not wait for it').toBe(1);
  });

  test('returns to the primary after upstream.retryAfter', async () => {
    prepare();
    const proxy = await start();
    primary.fail('reset');
    await proxy.ask(PATH);
    primary.heal();
    primary.reset();
    await proxy.ask(`${PREFIX}/other`);
    expect(primary.asked).toBe(0);
    proxy.pass(RETRY_AFTER);
    expect(numberIn(await proxy.ask(`${PREFIX}/third`))).toBe(2);
  });

  test('tries a server that has failed recently after all others', async () => {
    prepare();
    another.put('21.T11998/third', numbered(1));
    const proxy = await start({ UPSTREAM_SECONDARIES: `${secondary.url},${another.url}` });
    primary.fail('reset');
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
    const { asked } = primary;
    secondary.fail('reset');
    expect(numberIn(await proxy.ask(`${PREFIX}/third`))).toBe(1);
    expect([primary.asked, another.asked]).toEqual([asked, 1]);
  });

  test('does not divert other reads to the secondary when its own record is broken', async () => {
    prepare();
    const proxy = await start();
    primary.fail('wrong-handle', { times: 1 });
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
    expect(numberIn(await proxy.ask(`${PREFIX}/other`))).toBe(2);
  });

  test('returns the stale record when all servers fail', async () => {
    prepare();
    const proxy = await start();
    await proxy.ask(PATH);
    proxy.pass(HOUR);
    primary.fail('reset');
    secondary.fail('reset');
    const answer = await proxy.ask(PATH);
    expect([numberIn(answer), answer.headers['cache-status']]).toEqual([
      2,
      expect.stringContaining('detail=error'),
    ]);
    expect((await proxy.ask(`${PREFIX}/other`)).status).toBe(502);
  });
});

describe('request that only the primary may answer (failover)', () => {
  test.each([
    ['auth=true', `${PATH}?auth=true`, {}],
    ['a read with a login', PATH, { headers: { Authorization: WRITE_HEADERS.Authorization } }],
    ['a list', '/api/handles?prefix=21.T11998', {}],
    ['a deletion', PATH, { method: 'DELETE', headers: WRITE_HEADERS }],
    ['a write', PATH, { method: 'PUT', headers: WRITE_HEADERS, body: JSON.stringify(numbered(3)) }],
  ])('is not sent to a secondary: %s', async (_what, target, question) => {
    prepare();
    const proxy = await start();
    primary.fail('reset');
    expect((await proxy.ask(target, question)).status).toBe(502);
    expect(secondary.asked).toBe(0);
  });
});

describe('secondary response that may lag behind the primary', () => {
  test('is fresh for at most upstream.secondaryMaxTtl', async () => {
    prepare();
    const proxy = await start();
    primary.fail('reset', { times: 2 });
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
    proxy.pass(LAG - 1);
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
    proxy.pass(1);
    expect(numberIn(await proxy.ask(PATH))).toBe(2);
  });

  test('is never served stale when it is a 404', async () => {
    prepare();
    primary.put('21.T11998/new', numbered(2));
    const proxy = await start();
    primary.fail('reset', { times: 2 });
    expect((await proxy.ask(`${PREFIX}/new`)).status).toBe(404);
    proxy.pass(LAG);
    primary.fail('reset');
    secondary.fail('reset');
    expect((await proxy.ask(`${PREFIX}/new`)).status).toBe(502);
  });

  test('is never served stale when it is a 404, also after a restart with a snapshot', async () => {
    prepare();
    primary.put('21.T11998/new', numbered(2));
    const env = { CACHE_SNAPSHOT_FILE: join(newFolder(), 'snapshot') };
    const before = await start(env);
    primary.fail('reset');
    expect((await before.ask(`${PREFIX}/new`)).status).toBe(404);
    expect(numberIn(await before.ask(PATH))).toBe(1);
    await before.close();
    secondary.fail('reset');
    const after = await start(env);
    await after.app.host.whenRestored();
    expect((await after.ask(`${PREFIX}/new`)).status).toBe(502);
    expect(numberIn(await after.ask(PATH)), 'a record is').toBe(1);
  });

  test('does not replace a newer response from the primary', async () => {
    prepare();
    primary.put(
      '21.T11998/new',
      numbered(2).map((value) => ({ ...(value as object), ttl: 1 })),
    );
    const proxy = await start();
    expect(numberIn(await proxy.ask(`${PREFIX}/new`))).toBe(2);
    proxy.pass(2000);
    primary.fail('reset');
    const answer = await proxy.ask(`${PREFIX}/new`);
    expect([answer.status, numberIn(answer)]).toEqual([200, 2]);
    expect(answer.headers['cache-status']).toContain('detail=error');
    const { asked } = secondary;
    expect(numberIn(await proxy.ask(`${PREFIX}/new`))).toBe(2);
    expect(secondary.asked, 'the next read starts no load').toBe(asked);
    proxy.pass(LAG);
    expect((await proxy.ask(`${PREFIX}/new`)).status, 'by now it may have been deleted').toBe(404);
  });

  test.each([
    ['its handle', { handles: ['21.T11998/kept'] }],
    ['its prefix', { prefix: '21.T11998/' }],
    ['all handles', { prefix: '' }],
  ])('is not used after a purge of %s, which follows a write to the database', async (_, what) => {
    prepare();
    const proxy = await start();
    await proxy.app.operations.purge({ ...what, isSoft: false });
    primary.fail('reset');
    expect((await proxy.ask(PATH)).status).toBe(502);
    expect(secondary.asked).toBe(0);
    proxy.pass(LAG);
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
  });

  test('is not used after a purge that many others have followed', async () => {
    prepare();
    const proxy = await start();
    const others = Array.from({ length: 200 }, (_, at) => `21.T${at}/`);
    for (const prefix of ['21.T11998/', ...others])
      await proxy.app.operations.purge({ prefix, isSoft: false });
    primary.fail('reset');
    expect((await proxy.ask(PATH)).status).toBe(502);
  });

  test('is used for other handles than those of a purge', async () => {
    prepare();
    const proxy = await start();
    await proxy.app.operations.purge({ prefix: '21.T1/', isSoft: false });
    primary.fail('reset');
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
  });

  test('is not used for a recently written handle', async () => {
    prepare();
    const proxy = await start();
    expect((await putNumbered(proxy.url, PATH, 3)).status).toBe(200);
    primary.fail('reset');
    expect((await proxy.ask(PATH)).status, 'nobody sees the old record').toBe(502);
    expect(secondary.asked).toBe(0);
    proxy.pass(LAG);
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
  });
});
