// Admin calls on the built program with several workers, and their log lines.
import { expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { textValue } from '../handle-server/seed.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/admin-live';
const PATH = `/api/handles/${HANDLE}`;
const TOKEN = 'a-token-of-the-operator';

const start = (env: Record<string, string> = {}): Promise<BuiltProxy> =>
  startBuiltProxy({ UPSTREAM_URL: demo.url, SERVER_WORKERS: '2', ADMIN_TOKEN: TOKEN, ...env });

const call = (proxy: BuiltProxy, method: string, path: string, body?: object) =>
  ask(proxy.adminUrl, path, {
    method,
    headers: { Authorization: `Bearer ${TOKEN}` },
    ...(body && { body: JSON.stringify(body) }),
  });

/** Sends enough requests, on new connections, to reach every worker. */
const askAll = async (proxy: BuiltProxy): Promise<Set<string>> => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => ask(proxy.url, PATH)));
  return new Set(answers.map(({ text }) => /example\.org\/(\w+)/.exec(text)?.[1] ?? text));
};

const put = (text: string): void => {
  demo.put(HANDLE, [textValue(1, 'URL', `https://example.org/${text}`)]);
};

test.each([{ handle: HANDLE }, { prefix: '21.T11998/admin-' }, { all: true }])(
  'a purge of %j holds in every worker when it is answered',
  async (body) => {
    const proxy = await start();
    put('old');
    expect(await askAll(proxy)).toEqual(new Set(['old']));
    put('new');
    // A worker without earlier requests has no old entry.
    expect(await askAll(proxy)).toContain('old');
    const purged = await call(proxy, 'POST', '/purge', body);
    expect(purged.status).toBe(200);
    expect(await askAll(proxy)).toEqual(new Set(['new']));
  },
);

test('the operator sees all workers as one, changes their log level, and every call is in the log', async () => {
  const proxy = await start();
  put('old');
  await askAll(proxy);
  // A worker that is late is left out.
  await expect
    .poll(async () => JSON.parse((await call(proxy, 'GET', '/stats')).text) as unknown)
    .toMatchObject({
      requests: { total: 40 },
      logLevel: 'info',
      topHandles: [{ name: HANDLE, count: 40 }],
      workers: [{}, {}],
    });
  const looked = JSON.parse((await call(proxy, 'GET', `/cache?handle=${HANDLE}`)).text) as {
    copies: object[];
  };
  expect(looked.copies.length).toBeGreaterThanOrEqual(1);
  await call(proxy, 'POST', '/purge', { handle: HANDLE, soft: true });
  expect((await call(proxy, 'PUT', '/log-level', { level: 'warn' })).status).toBe(200);
  expect((await ask(proxy.adminUrl, '/purge', { method: 'POST', body: '{"all":true}' })).status).toBe(401);
  const requests = (): number => proxy.logs().filter(({ msg }) => msg === 'request').length;
  // Lines are written a tenth of a second later.
  await expect.poll(requests).toBe(40);
  await askAll(proxy);
  await proxy.stop();
  expect(requests()).toBe(40);
  // The wait for the start asks /readyz, which is a line when it says no.
  const calls = proxy.logs().filter(({ msg, path }) => msg === 'admin call' && path !== '/readyz');
  expect(calls).toMatchObject([
    { method: 'GET', path: '/cache', told: { handle: HANDLE }, status: 200, from: '127.0.0.1' },
    { method: 'POST', path: '/purge', told: { count: 1, handles: [HANDLE] }, status: 200 },
  ]);
  expect(proxy.output()).not.toContain(TOKEN);
});

test('the status page of several workers shows them as one, and its stream keeps no stop waiting', async () => {
  // Longer than a test may take: requests in flight would be given as much.
  const proxy = await start({ SERVER_SHUTDOWN_TIMEOUT: '1m' });
  put('old');
  await askAll(proxy);
  const stream = await fetch(`${proxy.adminUrl}/events`, { headers: { Authorization: `Bearer ${TOKEN}` } });
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const read = async (): Promise<boolean> => {
    const { value, done } = (await reader?.read().catch(() => undefined)) ?? { done: true };
    text += value ?? '';
    return !done;
  };
  const stats = (): { requests: { total: number }; workers: unknown[] }[] =>
    text
      .split('\n\n')
      .slice(0, -1)
      .map((message) => JSON.parse(message.slice('data: '.length)) as ReturnType<typeof stats>[0]);
  while (stats().length < 2 && (await read()));
  expect(stats().at(-1)).toMatchObject({ requests: { total: 40 } });
  expect(stats().at(-1)?.workers).toHaveLength(2);
  expect(await proxy.stop()).toEqual({ code: 0, signal: null });
  while (await read());
});
