import request from 'supertest';
import { describe, expect, test } from 'vitest';
import type { Prepared, PreparedName } from '../../src/cache/prepared-cache.js';
import type { Plugin } from '../../src/plugin.js';
import { ask, type Asked } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { configFrom } from '../support/load-config.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const demo = await startDemoServer();
const PAGE = '/api/handles/21.T11998/page';

const reload = (proxy: Proxy, env: Record<string, string>): void => {
  proxy.app.reload(configFrom({ env: { UPSTREAM_URL: demo.url, LOG_LEVEL: 'silent', ...env } }));
};

const header =
  (name: string, path: string, headers = {}) =>
  async (proxy: Proxy) =>
    (await proxy.ask(path, { headers })).headers[name];
const status =
  (path: string, question = {}) =>
  async (proxy: Proxy) =>
    (await proxy.ask(path, question)).status;

describe('configuration reload', () => {
  test.each<
    [
      key: string,
      env: Record<string, string>,
      seen: (proxy: Proxy) => Promise<unknown>,
      before: unknown,
      after: unknown,
    ]
  >([
    [
      'HTTP_CLIENT_MAX_AGE',
      { HTTP_CLIENT_MAX_AGE: '5s' },
      header('cache-control', '/21.T11998/page'),
      'public, max-age=60',
      'public, max-age=5',
    ],
    [
      'HTTP_SHARED_MAX_AGE',
      { HTTP_SHARED_MAX_AGE: '5s' },
      header('cache-control', PAGE),
      'public, max-age=0, must-revalidate',
      'public, max-age=0, must-revalidate, s-maxage=5',
    ],
    [
      'DELETION_VALUES',
      { DELETION_VALUES: 'true' },
      status(`${PAGE}?index=9`, { method: 'DELETE' }),
      403,
      401,
    ],
    [
      'DELETION_ALLOWED_FOR',
      { DELETION_ALLOWED_FOR: '21.T11998/p*' },
      status(PAGE, { method: 'DELETE' }),
      403,
      401,
    ],
    [
      'REDIRECT_ALLOWED_HOSTS',
      { REDIRECT_ALLOWED_HOSTS: 'elsewhere.example' },
      status('/21.T11998/page'),
      302,
      200,
    ],
    ['V2_ANONYMOUS_READ', { V2_ANONYMOUS_READ: 'true' }, status('/api/v2/handles/21.T11998/page'), 401, 200],
    [
      'CACHE_STALE_IF_ERROR',
      { CACHE_STALE_IF_ERROR: '0s' },
      async (proxy) => {
        await proxy.ask(`${PAGE}?auth=true`);
        const answer = await request(proxy.app.admin).get('/cache').query({ handle: '21.T11998/page' });
        const { copies } = answer.body as { copies: { ttlSeconds: number; staleIfErrorSeconds: number }[] };
        return copies.map(({ ttlSeconds, staleIfErrorSeconds }) => staleIfErrorSeconds > ttlSeconds);
      },
      [true],
      [false],
    ],
    [
      'PAGE_TITLE',
      { PAGE_TITLE: 'Example PIDs' },
      async (proxy) => (await proxy.ask('/')).text.includes('Example PIDs'),
      false,
      true,
    ],
  ])('applies %s', async (_key, env, seen, before, after) => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    await proxy.ask(PAGE);
    expect(await seen(proxy)).toEqual(before);
    reload(proxy, env);
    expect(await seen(proxy)).toEqual(after);
    reload(proxy, {});
    expect(await seen(proxy)).toEqual(before);
  });

  test('updates the OpenAPI title on the admin listener', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    const titles = async (): Promise<boolean[]> => {
      const [page, json] = await Promise.all(
        ['/openapi', '/openapi.json'].map((path) => request(proxy.app.admin).get(path)),
      );
      return [page?.text, json?.text].map((text) => text?.includes('Example PIDs') === true);
    };
    expect(await titles()).toEqual([false, false]);
    reload(proxy, { PAGE_TITLE: 'Example PIDs' });
    expect(await titles()).toEqual([true, true]);
  });

  test('applies a new traffic limit and removes a deleted one', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    const asked = async (): Promise<number[]> => {
      const answers: Asked[] = [];
      for (let times = 0; times < 3; times++) answers.push(await ask(proxy.url, PAGE));
      return answers.map((answer) => answer.status);
    };
    expect(await asked()).toEqual([200, 200, 200]);
    reload(proxy, { TRAFFIC_RULES: '[{"name":"all","limit":{"perMinute":2}}]' });
    expect(await asked()).toEqual([200, 200, 429]);
    reload(proxy, {});
    expect(await asked()).toEqual([200, 200, 200]);
  });

  test('a client that has used up a limit may continue after the limit is raised', async () => {
    const limited = (limit: object) => ({ TRAFFIC_RULES: JSON.stringify([{ name: 'all', limit }]) });
    const proxy = await startProxy({ UPSTREAM_URL: demo.url, ...limited({ perMinute: 1, burst: 3 }) });
    const asked = async (): Promise<number> => (await ask(proxy.url, PAGE)).status;
    for (let times = 0; times < 3; times++) expect(await asked()).toBe(200);
    expect(await asked()).toBe(429);
    reload(proxy, limited({ perSecond: 100 }));
    expect(await asked()).toBe(200);
  });

  test('applies a new cache.found.maxTtl to later loads only', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    const life = async (handle: string): Promise<unknown> => {
      const [copy] = await proxy.app.operations.inspect(handle);
      return copy?.ttlSeconds;
    };
    await proxy.ask(PAGE);
    reload(proxy, { CACHE_FOUND_MAX_TTL: '1m' });
    await proxy.ask('/api/handles/21.T11998/DEMO');
    expect(await life('21.T11998/page')).toBe(3600);
    expect(await life('21.T11998/DEMO')).toBe(60);
  });

  test('keeps one cache of prepared responses when a plugin rejects the new settings', async () => {
    const plugin: Plugin = {
      name: 'example',
      isEnabled: () => true,
      load: () =>
        Promise.resolve({
          start: () => ({
            handlers({ settings }) {
              if (settings.page.title === 'Broken') throw new Error('cannot be rendered');
              return {};
            },
          }),
        }),
    };
    const proxy = await startProxy({ UPSTREAM_URL: demo.url }, { plugins: [plugin] });
    expect(() => {
      reload(proxy, { PAGE_TITLE: 'Broken' });
    }).toThrow('cannot be rendered');
    for (let times = 0; times < 3; times++) await proxy.ask(PAGE);
    const { preparedCache, clock } = proxy.app.host;
    const prepared = preparedCache.current.find(PAGE as PreparedName<Prepared>)!;
    expect(preparedCache.current.use(prepared, clock.now())).toBe(true);
  });

  test('preserves counters and cached entries', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    for (let times = 0; times < 3; times++) await proxy.ask(PAGE);
    demo.reset();
    reload(proxy, { HTTP_CLIENT_MAX_AGE: '5s' });
    for (let times = 0; times < 3; times++) await proxy.ask(PAGE);
    expect(demo.asked).toBe(0);
    expect((await proxy.app.operations.stats()).requests.byResult).toMatchObject({ hit: 5, miss: 1 });
  });
});
