// These tests use the real app on a real socket.
import { once } from 'node:events';
import { type RequestListener, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Statistics } from '../../src/observe/statistics.js';
import type { createHistory } from '../../src/plugins/admin/history.js';
import { MAX_VIEWERS } from '../../src/plugins/admin/status/page.js';
import { createAdminAlone, noOperations } from '../support/admin.js';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';

type History = ReturnType<ReturnType<typeof createHistory>>;

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';
const TOKEN = 'a-token-of-the-operator';

afterEach(() => {
  vi.useRealTimers();
});

async function listen(listener: RequestListener): Promise<{ url: string; close: () => void }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(close);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** Starts the admin listener alone; `stats` counts how often the statistics are collected. */
async function listenAlone(stats = vi.fn(noOperations.stats)) {
  const onUnexpected = vi.fn();
  const app = createAdminAlone({ operations: { ...noOperations, stats }, onUnexpected });
  return { ...(await listen(app)), stats, onUnexpected };
}

/** Reads the stream; `next` returns one message, or undefined at the end. */
async function watch(url: string, headers: Record<string, string> = {}) {
  const leaving = new AbortController();
  onTestFinished(() => {
    leaving.abort();
  });
  const { body, status, headers: told } = await fetch(`${url}/events`, { headers, signal: leaving.signal });
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  const next = async (): Promise<(Statistics & History) | undefined> => {
    for (;;) {
      const end = rest.indexOf('\n\n');
      if (end >= 0) {
        const message = rest.slice(0, end);
        rest = rest.slice(end + 2);
        return JSON.parse(message.replace(/^data: /, '')) as Statistics & History;
      }
      const read = await reader?.read().catch(() => undefined);
      if (read?.value === undefined) return undefined;
      rest += read.value;
    }
  };
  return {
    status,
    headers: told,
    next,
    leave: () => {
      leaving.abort();
    },
  };
}

/** Fakes only the stream interval; other timers remain real. */
const holdTheStream = (): void => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
};

describe('status page', () => {
  test('contains no data, and loads all resources from this listener', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    await proxy.ask(PATH);
    const { url } = await listen(proxy.app.admin);
    const page = await ask(url, '/');
    expect(page.status).toBe(200);
    expect(page.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
    expect(page.text).not.toContain('21.T11998');
    const policy = String(page.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(page.text, 'nothing inline').not.toMatch(/<style|style=|<script>|\son\w+=/);
    const loaded = [...page.text.matchAll(/(?:src|href)="(status\/[^"]+)"/g)].map(([, name]) => name ?? '');
    expect(loaded).toEqual(['status/style.css', 'status/main.js']);
    expect((await ask(url, '/status/style.css')).headers['content-type']).toContain('text/css');
  });

  test('has an icon, which browsers request for every response of the listener', async () => {
    const { url } = await listenAlone();
    expect((await ask(url, '/')).text).toContain('<link rel="icon" href="favicon.ico"');
    const { status, headers, text } = await ask(url, '/favicon.ico');
    expect([status, headers['content-type'], text]).toEqual([
      200,
      expect.stringContaining('image/svg+xml'),
      expect.stringMatching(/^<svg/),
    ]);
  });

  test('is served with the scripts that it needs, and no other file', async () => {
    const { url } = await listenAlone();
    const seen = new Set<string>();
    const visit = async (name: string): Promise<void> => {
      if (seen.has(name)) return;
      seen.add(name);
      const { status, headers, text } = await ask(url, `/status/${name}`);
      expect(status, name).toBe(200);
      expect(headers['content-type']).toContain('javascript');
      for (const [, other = ''] of text.matchAll(/from '\.\/([^']+)'/g)) await visit(other);
    };
    await visit('main.js');
    expect(seen.size).toBeGreaterThan(3);
    for (const name of ['page.ts', '..%2Fpage.ts', '..%2F..%2Fapp.ts', 'constructor']) {
      expect((await ask(url, `/status/${name}`)).status, name).toBe(404);
    }
  });

  test.each(['/', '/events', '/status/main.js', `/?token=${TOKEN}`, `/events?token=${TOKEN}`])(
    'requires the token in a header for %s, and otherwise returns a 401 that lists the schemes',
    async (path) => {
      const proxy = await startProxy({ UPSTREAM_URL: demo.url, ADMIN_TOKEN: TOKEN });
      const { url } = await listen(proxy.app.admin);
      const refused = await fetch(url + path);
      expect(refused.status).toBe(401);
      // Browsers parse one scheme per header line and prompt for a password only for a known scheme.
      const { rawHeaders } = await ask(url, path);
      expect(rawHeaders.filter((_, at) => rawHeaders[at - 1] === 'WWW-Authenticate')).toEqual([
        'Basic realm="admin"',
        'Bearer realm="admin"',
      ]);
      const headers = { Authorization: `Basic ${Buffer.from(`operator:${TOKEN}`).toString('base64')}` };
      const leaving = new AbortController();
      const answered = await fetch(url + path, { headers, signal: leaving.signal });
      expect(answered.status).toBe(200);
      leaving.abort();
    },
  );

  test('streams the statistics immediately and then every second', async () => {
    holdTheStream();
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    const { url } = await listen(proxy.app.admin);
    const { headers, next } = await watch(url);
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(headers.get('x-accel-buffering')).toBe('no');
    expect(await next()).toMatchObject({
      requests: { total: 0 },
      lastMinute: { hitRatio: null },
      history: [],
    });
    for (let times = 0; times < 4; times++) await proxy.ask(PATH);
    await vi.advanceTimersByTimeAsync(1000);
    const second = await next();
    const asked = { hitRatio: 0.75, upstream: { requests: 1, failures: 0 } };
    expect(second).toMatchObject({ requests: { total: 4 }, lastMinute: asked, history: [asked] });
    const read = async (path: string) => JSON.parse((await ask(url, path)).text) as object;
    expect(Object.keys(second ?? {})).toEqual([
      ...Object.keys(await read('/stats')),
      ...['lastMinute', 'history', 'traffic'],
    ]);
    expect(second).toMatchObject({ traffic: { ...(await read('/traffic')), blockedCount: 0 } });
    expect(second).toMatchObject({ traffic: { networks: [{ name: '127.0.0.0/24', misses: 1 }] } });
  });

  test('collects the statistics once for all viewers, and never when there are none', async () => {
    holdTheStream();
    const { url, stats } = await listenAlone();
    const watching = [await watch(url), await watch(url), await watch(url)];
    for (const { next } of watching) await next();
    expect(stats).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1000);
    for (const { next } of watching) await next();
    expect(stats).toHaveBeenCalledTimes(2);
    for (const { leave } of watching) leave();
    await expect.poll(() => vi.getTimerCount()).toBe(0);
    expect((await watch(url)).status).toBe(200);
    await expect.poll(() => stats.mock.calls.length).toBe(3);
  });

  test('limits the number of stream viewers', async () => {
    const { url } = await listenAlone();
    const watching = [];
    for (let count = 0; count < MAX_VIEWERS; count++) watching.push(await watch(url));
    const refused = await ask(url, '/events');
    expect(refused.status).toBe(503);
    expect(JSON.parse(refused.text)).toMatchObject({ code: 'ADMIN_BUSY' });
    watching[0]?.leave();
    await expect.poll(async () => (await watch(url)).status).toBe(200);
  });

  test('responds to HEAD without opening a stream', async () => {
    holdTheStream();
    const { url, stats } = await listenAlone();
    const answer = await ask(url, '/events', { method: 'HEAD' });
    expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expect(vi.getTimerCount()).toBe(0);
    expect(stats).not.toHaveBeenCalled();
  });

  test('ends the stream and logs the error when the statistics fail', async () => {
    const failure = new Error('secret');
    const stats = vi.fn((): never => {
      throw failure;
    });
    const { url, onUnexpected } = await listenAlone(stats);
    expect(await (await watch(url)).next()).toBeUndefined();
    expect(onUnexpected).toHaveBeenCalledWith(failure);
  });

  test('closes its streams and their timer with the listener', async () => {
    holdTheStream();
    const { url, close } = await listenAlone();
    const { next } = await watch(url);
    await next();
    close();
    expect(await next()).toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
  });
});
