// Several workers on one port behave as one proxy: one load, one memory of what was written.
import { beforeEach, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { basic, startDemoServer } from '../support/demo.js';
import { workersOf } from '../support/workers.js';
import { adminValue, textValue } from '../handle-server/seed.js';

const PATH = '/api/handles/21.T11998/page';
const demo = await startDemoServer();

beforeEach(() => {
  demo.put('21.T11998/page', [textValue(1, 'URL', 'https://example.org/before'), adminValue()]);
});

const start = (): Promise<BuiltProxy> => startBuiltProxy({ UPSTREAM_URL: demo.url, SERVER_WORKERS: '2' });

/** Sends enough requests, on new connections, to reach every worker. */
const askAll = async (proxy: BuiltProxy): Promise<string[]> => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => ask(proxy.url, PATH)));
  return answers.map(({ text }) => text);
};

test('callers of one cold handle, on all workers, are one upstream request', async () => {
  const proxy = await start();
  demo.reset();
  demo.delay(300);
  const answers = await Promise.all(Array.from({ length: 300 }, () => ask(proxy.url, PATH)));
  demo.heal();
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(demo.askedFor('21.T11998/page')).toBe(1);
});

test('a write through one worker is seen through all of them, at once', async () => {
  const proxy = await start();
  for (let round = 0; round < 10; round++) {
    await askAll(proxy);
    const values = [textValue(1, 'URL', `https://example.org/round-${round}`), adminValue()];
    const headers = {
      Authorization: basic('300:21.T11998/USER01', 'password'),
      'Content-Type': 'application/json',
    };
    const written = await ask(proxy.url, PATH, { method: 'PUT', headers, body: JSON.stringify(values) });
    expect(written.status).toBe(200);
    for (const text of await askAll(proxy)) expect(text).toContain(`round-${round}`);
  }
});

test.each([
  ['another record', [textValue(1, 'URL', 'https://example.org/elsewhere'), adminValue()], 'elsewhere'],
  ['no record', undefined, '"responseCode":100'],
])('what one worker learns by auth=true holds for all of them: %s', async (_what, values, shown) => {
  const proxy = await start();
  for (const text of await askAll(proxy)) expect(text).toContain('before');
  if (values) demo.put('21.T11998/page', values);
  else demo.remove('21.T11998/page');
  expect((await ask(proxy.url, `${PATH}?auth=true`)).text).toContain(shown);
  for (const text of await askAll(proxy)) expect(text).toContain(shown);
});

test('the operator sees the sum of all workers', async () => {
  const proxy = await start();
  await askAll(proxy);
  const requests = async (): Promise<number> =>
    [...(await ask(proxy.adminUrl, '/metrics')).text.matchAll(/^handle_proxy_requests_total\{.*\} (\d+)$/gm)]
      .map(([, count]) => Number(count))
      .reduce((sum, count) => sum + count, 0);
  // A worker that is late is counted with its last report.
  await expect.poll(requests).toBe(40);
  expect(await workersOf(proxy)).toHaveLength(2);
});

test('a worker that is killed is replaced, and the others answer meanwhile', async () => {
  const proxy = await start();
  await askAll(proxy);
  const [killed = 0] = await workersOf(proxy);
  process.kill(killed, 'SIGKILL');
  for (let times = 0; times < 20; times++) {
    const answer = await ask(proxy.url, PATH).catch(() => undefined);
    // A connection that the killed worker had taken may break; every other one is answered.
    if (answer) expect(answer.status).toBe(200);
  }
  // Starting a process takes seconds where all cores are busy.
  await expect.poll(() => workersOf(proxy)).not.toContain(killed);
  await expect.poll(() => workersOf(proxy)).toHaveLength(2);
  expect((await askAll(proxy)).length).toBe(40);
});

test('SIGTERM ends the workers and the primary with exit code 0', async () => {
  const proxy = await start();
  await askAll(proxy);
  expect(await proxy.stop('SIGTERM')).toMatchObject({ code: 0 });
});
