// Built instances on a real Redis: the change feed contains every acknowledged write.
import '../support/real-sockets.js';
import { renameSync } from 'node:fs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { linesOf, newChangeFile, readFeed, startWebhookReceiver } from '../support/changes.js';
import { startDemoServer } from '../support/demo.js';
import { putNumbered } from '../support/demo-writes.js';
import { startRedisCluster } from '../support/redis-cluster.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

const demo = await startDemoServer();
const SECRET = Buffer.alloc(32, 7).toString('base64');
const pathOf = (handle: string): string => `/api/handles/${handle}`;

/** Creates handles until the proxy exits, and adds each acknowledged handle to `acknowledged`. */
async function writeUntilGone(proxy: BuiltProxy, name: string, acknowledged: string[]): Promise<void> {
  for (let count = 0; ; count++) {
    const handle = `21.T11998/${name}-${count}`;
    const written = await putNumbered(proxy.url, pathOf(handle), 1).catch(() => undefined);
    if (written === undefined) return;
    if (written.status === 201) acknowledged.push(handle);
  }
}

describeWithRedis('changes of instances that share a Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const start = (env: Record<string, string> = {}): Promise<BuiltProxy> =>
    startConnectedProxy({
      REDIS_URL: redis.url,
      UPSTREAM_URL: demo.url,
      CHANGES_ENABLED: 'true',
      // Each test has a separate feed.
      REDIS_KEY_PREFIX: `${expect.getState().currentTestName?.replace(/\W+/g, '-').slice(-40) ?? ''}:`,
      ...env,
    });
  const handlesOf = (changes: readonly { data?: object }[]): unknown[] =>
    changes.map((change) => (change.data as { handle?: unknown }).handle);

  test('include each acknowledged write, in the feed and webhook, after kill -9 of an instance', async () => {
    const receiver = await startWebhookReceiver();
    const env = { CHANGES_WEBHOOK_URL: receiver.url, CHANGES_WEBHOOK_SECRET: SECRET };
    const [one, other] = await Promise.all([start(env), start(env)]);
    const { events } = await readFeed(other.adminUrl, '0-0');
    const acknowledged: string[] = [];
    const writing = ['a', 'b', 'c'].map((name) => writeUntilGone(one, name, acknowledged));
    writing.push(...['d', 'e'].map((name) => writeUntilGone(other, name, acknowledged)));
    await expect.poll(() => acknowledged.length).toBeGreaterThan(150);
    await one.stop('SIGKILL');
    await expect.poll(() => acknowledged.length).toBeGreaterThan(300);
    await other.stop('SIGTERM');
    await Promise.all(writing);
    const last = await start(env);
    const { events: all } = await readFeed(last.adminUrl, '0-0');
    const missing = (seen: readonly unknown[]): string[] =>
      acknowledged.filter((handle) => !seen.includes(handle));
    await expect.poll(() => missing(handlesOf(all))).toEqual([]);
    await expect.poll(() => missing(receiver.received().map(({ handle }) => handle))).toEqual([]);
    // A machine that stands still for seconds starts an era, and so an epoch; none of them lacks an entry.
    const gaps = all.filter(({ event }) => event === 'gap');
    expect(gaps[0]).toBe(all[0]);
    for (const { id, data } of gaps) expect([id, data['dropped']]).toEqual([expect.stringMatching(/-1$/), 0]);
    expect(events).toEqual(all.slice(0, events.length));
    for (const name of ['a', 'd']) {
      const order = handlesOf(all).filter((handle) => String(handle).includes(`/${name}-`));
      expect(order).toEqual([...order].sort((a, b) => numberOf(a) - numberOf(b)));
    }
  });

  test('are delivered when Redis returns, after a gap for the changes that it has lost', async () => {
    const proxy = await start();
    const { events } = await readFeed(proxy.adminUrl, '0-0');
    const write = async (name: string): Promise<void> => {
      expect((await putNumbered(proxy.url, pathOf(`21.T11998/${name}`), 1)).status).toBe(201);
    };
    await write('before');
    await expect.poll(() => handlesOf(events)).toEqual([undefined, '21.T11998/before']);
    await redis.stop();
    await expect.poll(() => proxy.output()).toContain('redis unavailable');
    await write('while-1');
    await write('while-2');
    expect((await ask(proxy.adminUrl, '/metrics')).text).toContain(
      'handle_proxy_changes_queued{destination="feed"} 2',
    );
    await redis.restart();
    await expect
      .poll(() => handlesOf(events))
      .toEqual([undefined, '21.T11998/before', undefined, '21.T11998/while-1', '21.T11998/while-2']);
    const gaps = events.filter(({ event }) => event === 'gap');
    expect(gaps).toEqual([events[0], events[2]]);
  });

  test('are replaced by a gap for the webhook when Redis loses them with the position, before any later change', async () => {
    const receiver = await startWebhookReceiver();
    const proxy = await start({ CHANGES_WEBHOOK_URL: receiver.url, CHANGES_WEBHOOK_SECRET: SECRET });
    await putNumbered(proxy.url, pathOf('21.T11998/posted'), 1);
    await expect.poll(() => handlesOf(receiver.received().map((data) => ({ data })))).toHaveLength(2);
    receiver.respond(503);
    await putNumbered(proxy.url, pathOf('21.T11998/lost'), 1);
    await expect.poll(() => receiver.deliveries.length).toBeGreaterThan(1);
    await redis.restart();
    receiver.respond(200);
    await expect
      .poll(() => receiver.received().map(({ operation, handle }) => handle ?? operation))
      .toEqual(['gap', '21.T11998/posted', 'gap']);
  });

  test('are delivered without a gap after a period in which Redis did not respond', async () => {
    const proxy = await start({ REDIS_COMMAND_TIMEOUT: '200ms' });
    const { events } = await readFeed(proxy.adminUrl, '0-0');
    await putNumbered(proxy.url, pathOf('21.T11998/frozen-0'), 1);
    redis.freeze();
    await putNumbered(proxy.url, pathOf('21.T11998/frozen-1'), 1);
    redis.thaw();
    await putNumbered(proxy.url, pathOf('21.T11998/frozen-2'), 1);
    await expect.poll(() => handlesOf(events)).toContain('21.T11998/frozen-2');
    const seen = [...new Set(handlesOf(events))].slice(1);
    expect(seen).toEqual([0, 1, 2].map((count) => `21.T11998/frozen-${count}`));
    expect(events.filter(({ event }) => event === 'gap')).toEqual(events.slice(0, 1));
  });
});

describeWithRedis('changes of instances that share a Redis Cluster', () => {
  test('reach the webhook and the feed of each instance', async () => {
    const cluster = await startRedisCluster(3);
    onTestFinished(() => cluster.stop());
    const receiver = await startWebhookReceiver();
    const env = {
      ...{ REDIS_CLUSTER: cluster.nodes, UPSTREAM_URL: demo.url },
      ...{ CHANGES_WEBHOOK_URL: receiver.url, CHANGES_WEBHOOK_SECRET: SECRET },
    };
    const proxies = await Promise.all([startConnectedProxy(env), startConnectedProxy(env)]);
    const handles = proxies.map((_, at) => `21.T11998/in-cluster-${at}`);
    for (const [at, { url }] of proxies.entries()) await putNumbered(url, pathOf(handles[at]!), 1);
    for (const { adminUrl } of proxies) {
      const { events } = await readFeed(adminUrl, '0-0');
      await expect.poll(() => events.map(({ data }) => data['handle'])).toEqual([undefined, ...handles]);
    }
    await expect.poll(() => receiver.received().map(({ handle }) => handle)).toEqual([undefined, ...handles]);
  });
});

const numberOf = (handle: unknown): number => Number(String(handle).split('-').at(-1));

test('the change file continues in a new file after log rotation', async () => {
  const file = newChangeFile();
  const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, CHANGES_FILE: file.path });
  const write = (name: string) => putNumbered(proxy.url, pathOf(`21.T11998/${name}`), 1);
  await write('rotated-1');
  renameSync(file.path, `${file.path}.1`);
  proxy.hangUp();
  await write('rotated-2');
  await proxy.stop('SIGKILL');
  expect(linesOf(`${file.path}.1`)).toMatchObject([{ handle: '21.T11998/rotated-1' }]);
  expect(file.lines()).toMatchObject([{ handle: '21.T11998/rotated-2' }]);
});
