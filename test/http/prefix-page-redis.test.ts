// Pages of prefixes with a real Redis: sums of all instances, outages, restarts and bounds.
import { expect, it } from 'vitest';
import { answerByHandle } from '../support/batch.js';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { type Proxy, openProxy, startProxy } from '../support/proxy.js';
import '../support/real-sockets.js';
import { LITTLE_PATIENCE, PATIENCE, describeWithRedis } from '../support/redis-server.js';
import { mockUpstream } from '../support/upstream.js';
import { useRedis } from '../support/use-redis.js';

useNock();

describeWithRedis('pages of prefixes with Redis', () => {
  const redis = useRedis();
  let names = 0;

  /** Returns the variables of instances that share counts with no other test. */
  const variables = (more: Record<string, string> = PATIENCE): Record<string, string> => ({
    ...{ PREFIX_PAGES_PREFIXES: '21.T1,21.T2', REDIS_URL: redis.url, REDIS_KEY_PREFIX: `page-${++names}:` },
    ...fixed({ prefixPages: { publishEveryMs: 20 } }),
    ...more,
  });

  const resolve = async ({ ask }: Proxy, ...handles: string[]): Promise<void> => {
    for (const handle of handles) await ask(`/api/handles/${handle}`);
  };
  const pageOf = async ({ ask }: Proxy): Promise<[status: number, figures: Record<string, unknown>]> => {
    const { status, text } = await ask('/prefixes/21.T1', { headers: { Accept: 'application/json' } });
    return [status, JSON.parse(text) as Record<string, unknown>];
  };
  const expectFigures = (proxy: Proxy, figures: object): Promise<void> =>
    expect.poll(() => pageOf(proxy)).toMatchObject([200, figures]);

  it('show the sum of all instances on each of them', async () => {
    mockUpstream(answerByHandle);
    const env = variables();
    const [one, other] = [await startProxy(env), await startProxy(env)];
    await resolve(one, '21.T1/a', '21.T1/none', '21.T2/a', '21.T3/a');
    await resolve(other, '21.T1/a', '21.T1/b');
    const figures = { instances: 'all', resolutions: 4, found: 3, failed: 0 };
    for (const proxy of [one, other]) await expectFigures(proxy, figures);
  });

  it('continue after a restart, with the counts until it and the first start of counting', async () => {
    mockUpstream(answerByHandle);
    const env = variables();
    const first = await openProxy({ ...env, ...fixed({ prefixPages: { publishEveryMs: 3_600_000 } }) });
    await expect.poll(() => pageOf(first)).toMatchObject([200, { resolutions: 0 }]);
    await resolve(first, '21.T1/a', '21.T1/a');
    await first.close();
    const second = await startProxy(env);
    second.pass(60_000);
    await resolve(second, '21.T1/b');
    await expectFigures(second, {
      resolutions: 3,
      countedSince: expect.stringMatching(/^2026-11-21T(?:09:59|10:00:0)/) as string,
    });
  });

  it('lose and repeat no count when Redis is frozen, and reads do not wait for it', async () => {
    mockUpstream(answerByHandle);
    const proxy = await startProxy(variables(LITTLE_PATIENCE));
    await resolve(proxy, '21.T1/a');
    await expectFigures(proxy, { resolutions: 1 });
    redis.freeze();
    try {
      const startedAt = performance.now();
      await resolve(proxy, ...Array<string>(20).fill('21.T1/a'));
      // The command timeout is 500 ms.
      expect(performance.now() - startedAt).toBeLessThan(20 * 250);
      await expect.poll(() => pageOf(proxy)).toMatchObject([503, { code: 'PREFIX_PAGE_UNAVAILABLE' }]);
      const { headers } = await proxy.ask('/prefixes/21.T1');
      expect([headers['retry-after'], headers['cache-control']]).toEqual(['1', 'no-store']);
    } finally {
      redis.thaw();
    }
    await expectFigures(proxy, { resolutions: 21 });
  });

  it('count each read once, after Redis has refused a part of the counts', async () => {
    mockUpstream(answerByHandle);
    const env = variables();
    const key = `${env['REDIS_KEY_PREFIX'] ?? ''}{prefix-page}:2026-11:21.T2`;
    await redis.client.set(key, 'of another program');
    const proxy = await startProxy(env);
    await resolve(proxy, '21.T1/a', '21.T1/b');
    const failures = async (): Promise<number> => {
      const { values } = await proxy.metric('handle_proxy_redis_errors_total');
      return values.find(({ labels }) => labels['command'] === 'count')?.value ?? 0;
    };
    await expect.poll(failures).toBeGreaterThan(3);
    await redis.client.del(key);
    await expectFigures(proxy, { resolutions: 2 });
  });

  it('use a row for each prefix and month, which expires after two months', async () => {
    mockUpstream(answerByHandle);
    const env = variables();
    const prefix = env['REDIS_KEY_PREFIX'] ?? '';
    const proxy = await startProxy(env);
    await resolve(proxy, '21.T1/a', '21.T9/a');
    proxy.pass(10 * 86_400_000);
    await expectFigures(proxy, { month: '2026-12' });
    await resolve(proxy, '21.T1/secret-none');
    await expectFigures(proxy, { resolutions: 1, found: 0 });
    const keys = (await redis.client.keys('*{prefix-page}*')).filter((key) => key.startsWith(prefix));
    const rows = keys.filter((key) => !key.includes(':run:'));
    expect(rows.map((key) => key.split('}:')[1]).sort()).toEqual(
      ['2026-11', '2026-12'].flatMap((month) => [`${month}:21.T1`, `${month}:21.T2`]),
    );
    expect(keys.length).toBe(rows.length + 1);
    for (const key of keys) expect(await redis.client.pttl(key)).toBeGreaterThan(61 * 86_400_000);
    for (const key of rows)
      for (const field of await redis.client.hkeys(key))
        expect(field).toMatch(/^(?:since|found|unknown|failed|current|outdated)$/);
  });
});
