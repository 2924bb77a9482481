// A mirrored prefix, through the real app in front of the in-memory Handle server.

import { join } from 'node:path';
import request from 'supertest';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type ControlledOptions,
  type ControlledServer,
  createControlledServer,
} from '../support/demo-control.js';
import { adminValue, textValue } from '../../src/dev-server/seed.js';
import { administered, basic } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { newFolder } from '../support/folder.js';

const PREFIX = '21.T11998';
const COUNT = 30;
const NAMES = Array.from({ length: COUNT }, (_, at) => `${PREFIX}/N${at}`);
/** Number of listed handles: `NAMES` and the user. */
const LISTED = COUNT + 1;

const recordOf = (url: string) => [textValue(1, 'URL', url), adminValue()];

const SEED = {
  ...administered(PREFIX),
  ...Object.fromEntries(NAMES.map((name) => [name, recordOf('https://example.org/old')])),
};

const AUTHORIZATION = basic(`300:${PREFIX}/USER01`, 'password');
const LOGIN = { MIRROR_USER: `300:${PREFIX}/USER01`, MIRROR_PASSWORD: 'password' };

async function startServer(options: ControlledOptions = {}): Promise<ControlledServer & { url: string }> {
  const server = createControlledServer({ seed: SEED, ...options });
  onTestFinished(() => server.close());
  return Object.assign(server, await server.listen(0));
}

const startMirror = ({ url }: { url: string }, env: Record<string, string> = {}): Promise<Proxy> =>
  startProxy({
    UPSTREAM_URL: url,
    UPSTREAM_RETRY_AFTER: '0s',
    ...fixed({ upstream: { failoverAfterMs: 1000, breaker: { openForMs: 10 } } }),
    MIRROR_PREFIXES: PREFIX,
    ...LOGIN,
    ...env,
  });

/** Returns the numbers of handles by state, and the ages by part (s). */
async function stateOf(proxy: Proxy): Promise<Record<string, number>> {
  const metrics = (await proxy.metrics()).filter(({ name }) => name.startsWith('handle_proxy_mirror_'));
  const readings = metrics.flatMap(({ values }) => values);
  return Object.fromEntries(
    readings.map(({ labels, value }) => [labels['state'] ?? `${labels['part']} age`, value]),
  );
}

const whenComplete = (proxy: Proxy): Promise<void> =>
  expect
    .poll(() => stateOf(proxy))
    .toMatchObject({ 'records age': 0, listed: LISTED, checked: LISTED, failed: 0 });

const pathOf = (name: string): string => `/api/handles/${name}`;

const DAY_MS = 86_400_000;

describe('prefix mirror', () => {
  it('reads each listed handle once, and serves it from the cache', async () => {
    const server = await startServer();
    const proxy = await startMirror(server);
    await whenComplete(proxy);
    expect(NAMES.map((name) => server.askedFor(name))).toEqual(NAMES.map(() => 1));
    expect((await proxy.ask(pathOf('21.T11998/n7'))).headers['cache-status']).toContain('hit');
    expect(server.askedFor(`${PREFIX}/N7`)).toBe(1);
  });

  it('appears in the statistics with its age', async () => {
    const proxy = await startMirror(await startServer());
    await whenComplete(proxy);
    proxy.pass(60_000);
    const { mirrors } = (await request(proxy.app.admin).get('/stats').expect(200)).body as {
      mirrors: unknown;
    };
    const handles = { listed: LISTED, checked: LISTED, absent: LISTED, failed: 0 };
    expect(mirrors).toEqual([{ prefix: PREFIX, handles, listAgeSeconds: 60, recordsAgeSeconds: 60 }]);
  });

  it('serves every handle during an outage of 1,000 days', async () => {
    const server = await startServer();
    const proxy = await startMirror(server);
    await whenComplete(proxy);
    server.fail('reset');
    proxy.pass(1000 * DAY_MS);
    const answers = await Promise.all(NAMES.map((name) => proxy.ask(pathOf(name))));
    expect(answers.map(({ status }) => status)).toEqual(NAMES.map(() => 200));
  });

  it('reads a written handle again, so that an outage does not lose it', async () => {
    const server = await startServer();
    const proxy = await startMirror(server);
    await whenComplete(proxy);
    const [name = ''] = NAMES;
    const written = await proxy.ask(`${pathOf(name)}?index=various`, {
      method: 'PUT',
      headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
      body: JSON.stringify({ values: [textValue(1, 'URL', 'https://example.org/written')] }),
    });
    expect(written.status).toBe(200);
    await expect.poll(() => server.askedFor(name)).toBe(3);
    server.fail('reset');
    await expect.poll(async () => (await proxy.ask(pathOf(name))).text).toContain('/written');
  });

  it('reads a written handle again although the server of another mirrored prefix hangs', async () => {
    const [other, page] = ['21.T2', '21.T2/page'];
    const hanging = await startServer();
    const seed = {
      ...SEED,
      [`0.NA/${other}`]: [adminValue('111111111111')],
      [page]: recordOf('https://example.org/old'),
    };
    const server = await startServer({ prefixes: [PREFIX, other], seed });
    const UPSTREAMS = JSON.stringify([
      { prefixes: [PREFIX], url: hanging.url },
      { prefixes: [other], url: server.url },
    ]);
    const env = { UPSTREAMS, UPSTREAM_TIMEOUT: '10m', MIRROR_PREFIXES: `${PREFIX},${other}`, ...LOGIN };
    const proxy = await startProxy(env);
    await expect.poll(() => server.askedFor(page)).toBe(1);
    await expect.poll(() => hanging.askedFor(`${PREFIX}/USER01`)).toBe(1);
    const write = async (name: string): Promise<void> => {
      const headers = { authorization: AUTHORIZATION, 'content-type': 'application/json' };
      const body = JSON.stringify({ values: recordOf('https://example.org/written') });
      expect((await proxy.ask(pathOf(name), { method: 'PUT', headers, body })).status).toBe(200);
    };
    hanging.hold.holdReplies('GET');
    const [name = ''] = NAMES;
    await write(name);
    await expect.poll(() => hanging.askedFor(name)).toBe(3);
    await write(page);
    await expect.poll(() => server.askedFor(page)).toBe(3);
    hanging.hold.sendHeld('GET');
  });

  it('queries the server once for an unlisted handle until the next list', async () => {
    const server = await startServer();
    const proxy = await startMirror(server, { MIRROR_INTERVAL: '1h' });
    await whenComplete(proxy);
    const first = await proxy.ask(pathOf(`${PREFIX}/unlisted`));
    proxy.pass(1_799_000);
    const last = await proxy.ask(pathOf(`${PREFIX}/unlisted`));
    expect([first.status, last.status, server.askedFor(`${PREFIX}/unlisted`)]).toEqual([404, 404, 1]);
    expect(last.headers['cache-status']).toContain('hit; ttl=1');
  });

  it('keeps the usual TTL for an unlisted handle of a different prefix', async () => {
    const server = await startServer();
    const proxy = await startMirror(server, { MIRROR_INTERVAL: '1h' });
    await whenComplete(proxy);
    for (const wait of [0, 31_000]) {
      proxy.pass(wait);
      await proxy.ask(pathOf('0.NA/unlisted'));
    }
    expect(server.askedFor('0.NA/unlisted')).toBe(2);
  });

  it('shows, once the interval has passed, writes, deletions and new handles that bypassed the proxy', async () => {
    const server = await startServer();
    const proxy = await startMirror(server, { MIRROR_INTERVAL: '1s' });
    await whenComplete(proxy);
    const [changed = '', removed = ''] = NAMES;
    const created = `${PREFIX}/CREATED`;
    expect((await proxy.ask(pathOf(created))).status).toBe(404);
    server.put(changed, recordOf('https://example.org/new'));
    server.put(created, recordOf('https://example.org/created'));
    server.remove(removed);
    proxy.pass(1000);
    await expect.poll(async () => (await proxy.ask(pathOf(changed))).text).toContain('/new');
    await expect.poll(async () => (await proxy.ask(pathOf(removed))).status).toBe(404);
    await expect.poll(async () => (await proxy.ask(pathOf(created))).status).toBe(200);
  });

  it('continues after a restart without reading the restored records again', async () => {
    const server = await startServer();
    const file = join(newFolder(), 'snapshot');
    server.limit(40);
    const first = await startMirror(server, { CACHE_SNAPSHOT_FILE: file });
    await expect.poll(async () => (await stateOf(first))['checked']).toBeGreaterThan(10);
    await first.close();
    server.heal();
    const asked = NAMES.filter((name) => server.askedFor(name) > 0).length;
    server.reset();
    const second = await startMirror(server, { CACHE_SNAPSHOT_FILE: file });
    await whenComplete(second);
    const again = NAMES.filter((name) => server.askedFor(name) > 0).length;
    // Reads in flight at the restart are lost.
    expect(again).toBeLessThanOrEqual(COUNT - asked + 8);
    expect(again).toBeLessThan(COUNT);
  });

  it('waits for a server that is away at the start', async () => {
    const server = await startServer();
    server.fail('reset');
    const proxy = await startMirror(server);
    await expect.poll(() => server.asked).toBeGreaterThan(0);
    expect(await stateOf(proxy)).toMatchObject({ listed: 0, 'list age': Infinity, 'records age': Infinity });
    server.heal();
    await whenComplete(proxy);
  });

  it('finishes the first copy after an outage interrupts it', async () => {
    const server = await startServer();
    server.limit(40);
    const proxy = await startMirror(server);
    await expect.poll(async () => (await stateOf(proxy))['checked']).toBeGreaterThan(10);
    server.heal();
    server.fail('reset', { times: 10 });
    await whenComplete(proxy);
  });

  it('reports an infinite age for a prefix whose list is refused', async () => {
    const server = await startServer();
    const proxy = await startMirror(server, { MIRROR_PASSWORD: 'wrong' });
    await expect.poll(() => server.asked).toBeGreaterThan(0);
    expect(await stateOf(proxy)).toMatchObject({ listed: 0, 'records age': Infinity });
  });
});
