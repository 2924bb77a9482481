// One of two workers is frozen (SIGSTOP): no request waits long for it, and it applies missed messages before it answers.
import { expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { putNumbered } from '../support/demo-writes.js';
import { exchangeOn, openSocket } from '../support/raw-socket.js';
import { workersOf } from '../support/workers.js';

const demo = await startDemoServer();

const start = (env: Record<string, string> = {}): Promise<BuiltProxy> =>
  startBuiltProxy({ UPSTREAM_URL: demo.url, SERVER_WORKERS: '2', ...env });

/** Resumed when the test ends: a frozen process receives no SIGTERM. */
function freeze(pid: number): { thaw: () => void } {
  process.kill(pid, 'SIGSTOP');
  let isFrozen = true;
  const thaw = (): void => {
    if (isFrozen) process.kill(pid, 'SIGCONT');
    isFrozen = false;
  };
  onTestFinished(thaw);
  return { thaw };
}

test('readers and writers of handles it answers for wait little more than for the upstream', async () => {
  // Longer than a test may take: a request that waits for the frozen worker fails it.
  const proxy = await start({ UPSTREAM_TIMEOUT: '1m' });
  const [frozen = 0] = await workersOf(proxy);
  freeze(frozen);
  // Half of them belong to the worker that stands still.
  const paths = Array.from({ length: 16 }, (_, at) => `/api/handles/21.T11998/waited-${at}`);
  const answers = await Promise.all(paths.map((path) => ask(proxy.url, path)));
  expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 404));
  // Even a second for each would be more than a test may take.
  for (let count = 0; count < 40; count++) {
    const { status } = await putNumbered(proxy.url, paths[count % paths.length]!, count + 1);
    expect(status).toBeLessThan(300);
  }
});

test('requests it got meanwhile see the writes made meanwhile', async () => {
  const proxy = await start();
  const path = '/api/handles/21.T11998/missed';
  const question = `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  await putNumbered(proxy.url, path, 1);
  const copies = async (): Promise<{ pid: number }[]> =>
    (JSON.parse((await ask(proxy.adminUrl, '/cache?handle=21.T11998/missed')).text) as { copies: [] }).copies;
  const sockets = await Promise.all(Array.from({ length: 20 }, () => openSocket(proxy.url)));
  const askAll = () => Promise.all(sockets.map((socket) => exchangeOn(socket, question)));
  for (const { body } of await askAll()) expect(body).toContain('example.org/1"');
  const [frozen = 0] = (await copies()).map(({ pid }) => pid);
  const { thaw } = freeze(frozen);
  expect((await putNumbered(proxy.url, path, 2)).status).toBe(200);
  const answers = askAll();
  // Over a new connection: the frozen worker is not the one that answers.
  await ask(proxy.url, path);
  thaw();
  for (const { body } of await answers) expect(body).toContain('example.org/2"');
});

test('the metrics go on meanwhile, with what it had counted', async () => {
  const proxy = await start();
  await Promise.all(Array.from({ length: 20 }, (_, at) => ask(proxy.url, `/api/handles/21.T11998/n-${at}`)));
  const requests = async (): Promise<number> =>
    [...(await ask(proxy.adminUrl, '/metrics')).text.matchAll(/^handle_proxy_requests_total\{.*\} (\d+)$/gm)]
      .map(([, count]) => Number(count))
      .reduce((all, count) => all + count, 0);
  await expect.poll(requests).toBe(20);
  const [frozen = 0] = await workersOf(proxy);
  freeze(frozen);
  expect(await requests()).toBe(20);
});
