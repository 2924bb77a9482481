// One of two instances on one Redis stands still (SIGSTOP) while the other writes: what it missed it hears before it answers.
import { beforeAll, afterAll, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { putNumbered } from '../support/demo-writes.js';
import { exchangeOn, openSocket } from '../support/raw-socket.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

const demo = await startDemoServer();
const paths = Array.from({ length: 20 }, (_, at) => `/api/handles/21.T11998/missed-${at}`);
const questionOf = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

describeWithRedis('an instance that stands still', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const start = (): Promise<BuiltProxy> =>
    startConnectedProxy({ REDIS_URL: redis.url, UPSTREAM_URL: demo.url, REDIS_COMMAND_TIMEOUT: '1s' });

  test('shows what was written meanwhile to whoever asked after that', async () => {
    const [writer, frozen] = await Promise.all([start(), start()]);
    for (const path of paths) await putNumbered(writer.url, path, 1);
    const sockets = await Promise.all(paths.map(() => openSocket(frozen.url)));
    const askAll = () =>
      Promise.all(sockets.map((socket, at) => exchangeOn(socket, questionOf(paths[at] ?? ''))));
    for (const { body } of await askAll()) expect(body).toContain('example.org/1"');
    // Over a connection of its own: what it was busy with when it was stopped it would go on with first.
    await ask(frozen.url, '/api/handles/21.T11998/page');
    const thaw = (): boolean => process.kill(frozen.pid, 'SIGCONT');
    onTestFinished(() => void thaw());
    process.kill(frozen.pid, 'SIGSTOP');
    for (const path of paths) await putNumbered(writer.url, path, 2);
    const answers = askAll();
    thaw();
    for (const { body } of await answers) expect(body).toContain('example.org/2"');
  });
});
