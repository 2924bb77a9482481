// One of two workers is killed under load: clients of the other notice nothing, and it is replaced.
import { expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { type SteadyClient, startSteadyClient } from '../support/steady-client.js';
import { workersOf } from '../support/workers.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';
const CLIENTS_AT_A_TIME = 20;

const progress = (clients: SteadyClient[]): number =>
  Math.min(...clients.map(({ statuses }) => statuses().length));

/** The workers that have clients, each of which requests the page. */
async function busyWorkers(proxy: BuiltProxy): Promise<Set<number>> {
  const { text } = await ask(proxy.adminUrl, '/cache?handle=21.T11998/page');
  const { copies } = JSON.parse(text) as { copies: { pid: number }[] };
  return new Set(copies.map(({ pid }) => pid));
}

test('kill -9 of a worker under load is not noticed by the clients of the other', async () => {
  const proxy = await startBuiltProxy({
    UPSTREAM_URL: demo.url,
    SERVER_WORKERS: '2',
    // Longer than a test may take: nobody waits for an answer of the worker that is gone.
    UPSTREAM_TIMEOUT: '1m',
  });
  demo.delay(20);
  let unknown = 0;
  // Half of the new handles are loaded by the worker that is killed.
  const next = (): string => (unknown++ % 2 === 0 ? PATH : `/api/handles/21.T11998/unknown-${unknown}`);
  const clients: SteadyClient[] = [];
  // The kernel may give all connections of a moment to one worker.
  const haveBothClients = async (): Promise<boolean> => {
    if ((await busyWorkers(proxy)).size === 2) return true;
    const more = Array.from({ length: CLIENTS_AT_A_TIME }, () =>
      startSteadyClient(proxy.url, { pauseMs: 5, next, reconnects: () => true }),
    );
    clients.push(...more);
    await expect.poll(() => progress(more)).toBeGreaterThan(1);
    return false;
  };
  await expect.poll(haveBothClients).toBe(true);
  await expect.poll(() => progress(clients)).toBeGreaterThan(3);
  const [killed = 0, other = 0] = await workersOf(proxy);
  process.kill(killed, 'SIGKILL');
  await expect.poll(() => workersOf(proxy)).not.toContain(killed);
  await expect.poll(() => workersOf(proxy)).toHaveLength(2);
  // A connection that the killed worker held is closed, in a request or between two; it is the only one of its client.
  const ofOther = clients.filter(({ hasEnded }) => !hasEnded());
  expect(ofOther.length).toBeGreaterThan(0);
  const before = progress(ofOther);
  await expect.poll(() => progress(ofOther)).toBeGreaterThan(before + 10);
  expect(ofOther.flatMap(({ statuses }) => statuses()).filter((status) => status >= 500)).toEqual([]);
  expect(ofOther.reduce((all, { lost }) => all + lost(), 0)).toBe(0);
  expect(ofOther.filter(({ hasEnded }) => hasEnded())).toEqual([]);
  expect(await workersOf(proxy)).toContain(other);
  expect((await ask(proxy.url, PATH)).status).toBe(200);
});
