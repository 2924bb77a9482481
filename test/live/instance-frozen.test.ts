// An instance frozen by SIGSTOP during a write: it processes missed messages before it serves a request.
import { beforeAll, afterAll, expect, onTestFinished, test } from 'vitest';
import { LEASE_MS } from '../../src/cache/coherence/lease.js';
import { type BuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { putNumbered } from '../support/demo-writes.js';
import { exchangeOn, openSocket } from '../support/raw-socket.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

const demo = await startDemoServer();
const paths = Array.from({ length: 20 }, (_, at) => `/api/handles/21.T11998/missed-${at}`);
const questionOf = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

describeWithRedis('frozen instance', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const start = (): Promise<BuiltProxy> =>
    startConnectedProxy({ REDIS_URL: redis.url, UPSTREAM_URL: demo.url, REDIS_COMMAND_TIMEOUT: '1s' });

  /**
   * Starts two connected instances. The second has every handle in memory, and an open connection for each.
   */
  async function startBoth() {
    const [writer, frozen] = await Promise.all([start(), start()]);
    const put = (number: number) => Promise.all(paths.map((path) => putNumbered(writer.url, path, number)));
    await put(1);
    const sockets = await Promise.all(paths.map(() => openSocket(frozen.url)));
    const askAll = () =>
      Promise.all(sockets.map((socket, at) => exchangeOn(socket, questionOf(paths[at] ?? ''))));
    for (const { body } of await askAll()) expect(body).toContain('example.org/1"');
    const thaw = (): boolean => process.kill(frozen.pid, 'SIGCONT');
    onTestFinished(() => void thaw());
    process.kill(frozen.pid, 'SIGSTOP');
    demo.reset();
    return { put, askAll, thaw };
  }

  test('delays a write by a different instance until its lease has ended, and serves no old record when it resumes', async () => {
    const { put, askAll, thaw } = await startBoth();
    for (const { status } of await put(2)) expect(status).toBe(200);
    const answers = askAll();
    thaw();
    for (const { body } of await answers) expect(body).toContain('example.org/2"');
  });

  test('has applied the pending writes by the time they are acknowledged, when it resumes early', async () => {
    const { put, askAll, thaw } = await startBoth();
    const frozenAt = performance.now();
    const written = put(2).then(() => performance.now());
    await expect
      .poll(() => paths.every((path) => demo.askedFor(path.slice('/api/handles/'.length)) === 1))
      .toBe(true);
    const thawedAt = performance.now();
    thaw();
    const acknowledgedAt = await written;
    // Otherwise the lease has ended, at least a quarter of its duration after the freeze.
    expect(acknowledgedAt > thawedAt || acknowledgedAt > frozenAt + LEASE_MS / 4).toBe(true);
    for (const { body } of await askAll()) expect(body).toContain('example.org/2"');
  });
});
