// The admin API of the built program: its log lines, and a shutdown while the status page is open.
import { describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { textValue } from '../../src/dev-server/seed.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/admin-live';
const PATH = `/api/handles/${HANDLE}`;
const TOKEN = 'a-token-of-the-operator';

const start = (env: Record<string, string> = {}): Promise<BuiltProxy> =>
  startBuiltProxy({ UPSTREAM_URL: demo.url, ADMIN_TOKEN: TOKEN, ...env });

const call = (proxy: BuiltProxy, method: string, path: string, body?: object) =>
  ask(proxy.adminUrl, path, {
    method,
    headers: { Authorization: `Bearer ${TOKEN}` },
    ...(body && { body: JSON.stringify(body) }),
  });

const askOften = (proxy: BuiltProxy): Promise<unknown> =>
  Promise.all(Array.from({ length: 40 }, () => ask(proxy.url, PATH)));

demo.put(HANDLE, [textValue(1, 'URL', 'https://example.org/')]);

describe('admin API of the built program', () => {
  test('logs operator calls until the log level is raised, and never logs the token', async () => {
    const proxy = await start({ LOG_REQUESTS: 'all' });
    await askOften(proxy);
    expect(JSON.parse((await call(proxy, 'GET', '/stats')).text)).toMatchObject({
      requests: { total: 40 },
      logLevel: 'info',
      topHandles: [{ name: HANDLE, count: 40 }],
    });
    const looked = JSON.parse((await call(proxy, 'GET', `/cache?handle=${HANDLE}`)).text) as {
      copies: object[];
    };
    expect(looked.copies.length).toBeGreaterThanOrEqual(1);
    await call(proxy, 'POST', '/purge', { handle: HANDLE, soft: true });
    expect((await call(proxy, 'PUT', '/log-level', { level: 'warn' })).status).toBe(200);
    expect((await ask(proxy.adminUrl, '/purge', { method: 'POST', body: '{"all":true}' })).status).toBe(401);
    const requests = (): number => proxy.logs().filter(({ msg }) => msg === 'request').length;
    // Request log lines are buffered for 100 ms.
    await expect.poll(requests).toBe(40);
    await askOften(proxy);
    await proxy.stop();
    expect(requests()).toBe(40);
    // The start helper polls /readyz, which is logged while the instance is not ready.
    const calls = proxy.logs().filter(({ msg, path }) => msg === 'admin call' && path !== '/readyz');
    expect(calls).toMatchObject([
      { method: 'GET', path: '/cache', details: { handle: HANDLE }, status: 200, from: '127.0.0.1' },
      { method: 'POST', path: '/purge', details: { count: 1, handles: [HANDLE] }, status: 200 },
    ]);
    expect(proxy.output()).not.toContain(TOKEN);
  });

  test('does not delay a shutdown while the status page streams', async () => {
    // Exceeds the test timeout: a shutdown that waits for the stream fails.
    const proxy = await start({ SERVER_SHUTDOWN_TIMEOUT: '5m' });
    await askOften(proxy);
    const stream = await fetch(`${proxy.adminUrl}/events`, { headers: { Authorization: `Bearer ${TOKEN}` } });
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const read = async (): Promise<boolean> => {
      const { value, done } = (await reader?.read().catch(() => undefined)) ?? { done: true };
      text += value ?? '';
      return !done;
    };
    const stats = (): { requests: { total: number } }[] =>
      text
        .split('\n\n')
        .slice(0, -1)
        .map((message) => JSON.parse(message.slice('data: '.length)) as ReturnType<typeof stats>[0]);
    while (stats().length < 2 && (await read()));
    expect(stats().at(-1)).toMatchObject({ requests: { total: 40 } });
    expect(await proxy.stop()).toEqual({ code: 0, signal: null });
    while (await read());
  });
});
