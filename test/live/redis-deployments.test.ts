// Deployments for different Handle servers on one Redis: they share neither entries nor messages.
import request from 'supertest';
import { beforeEach, describe, expect, test } from 'vitest';
import { startConnectedProxy } from '../support/built-proxy.js';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { describeWithRedis } from '../support/redis-server.js';
import { useRedis } from '../support/use-redis.js';
import { startSharing } from '../support/sharing-proxies.js';

const [one, other] = [await startDemoServer(), await startDemoServer()];
const HANDLE = '21.T11998/shared';
const PATH = `/api/handles/${HANDLE}`;

describeWithRedis('deployments on one Redis', () => {
  const redis = useRedis();
  beforeEach(async () => {
    await redis.client.flushall();
    one.put(HANDLE, numbered(1));
    other.put(HANDLE, numbered(2));
    for (const demo of [one, other]) {
      demo.heal();
      demo.reset();
    }
  });

  type Env = Record<string, string>;
  const startAt = (upstreamUrl: string, env: Env = {}, redisUrl = redis.url): Promise<Proxy> =>
    startSharing({ redisUrl, upstreamUrl, env });
  const isStored = (count: number) => expect.poll(() => redis.client.keys('*:entry*')).toHaveLength(count);
  const purge = (proxy: Proxy) => request(proxy.app.admin).post('/purge').send({ all: true }).expect(200);
  const cacheStatusOf = async (proxy: Proxy) => (await proxy.ask(PATH)).headers['cache-status'];

  /** Asserts that loads and purges of one proxy do not affect the other, which caches a different record. */
  async function keepApart([first, second]: [Proxy, Proxy]): Promise<void> {
    expect(numberIn(await first.ask(PATH))).toBe(1);
    await isStored(1);
    expect(numberIn(await second.ask(PATH))).toBe(2);
    expect(numberIn(await first.ask(PATH))).toBe(1);
    await purge(first);
    // The first proxy has processed its own purge, so the second would have processed it by now.
    expect(await cacheStatusOf(first)).toContain('fwd=miss');
    expect(await cacheStatusOf(second)).toContain('; hit');
    expect([one.askedFor(HANDLE), other.askedFor(HANDLE)]).toEqual([2, 1]);
  }

  test('of different Handle servers are isolated with default settings', async () => {
    await keepApart([await startAt(one.url), await startAt(other.url)]);
  });

  test('of different Handle servers are isolated under one redis.keyPrefix', async () => {
    const env = { REDIS_KEY_PREFIX: 'same:' };
    await keepApart([await startAt(one.url, env), await startAt(other.url, env)]);
  });

  test.each<Env>([{}, { REDIS_KEY_PREFIX: 'same:' }])(
    'in different databases of one Redis are isolated (%o)',
    async (env) => {
      await keepApart([await startAt(one.url, env), await startAt(other.url, env, `${redis.url}/1`)]);
    },
  );

  test('of one Handle server in separate databases receive no messages from each other', async () => {
    const [first, second] = [await startAt(one.url), await startAt(one.url, {}, `${redis.url}/2`)];
    for (const proxy of [first, second]) await proxy.ask(PATH);
    await purge(first);
    expect(await cacheStatusOf(first)).toContain('fwd=miss');
    expect(await cacheStatusOf(second)).toContain('; hit');
    expect(one.askedFor(HANDLE)).toBe(3);
  });

  test('share entries when their upstream URLs differ only in spelling', async () => {
    const upper = one.url.replace('http://127.0.0.1', 'HTTP://127.1');
    const [first, second] = [await startAt(one.url), await startAt(upper)];
    await first.ask(PATH);
    await isStored(1);
    expect(await cacheStatusOf(second)).toContain('detail=redis');
  });

  describe('that share a redis.keyPrefix by mistake', () => {
    const env = { REDIS_KEY_PREFIX: 'mistake:' };
    const startBuilt = (upstreamUrl: string) =>
      startConnectedProxy({ REDIS_URL: redis.url, UPSTREAM_URL: upstreamUrl, ...env });

    test('log a warning in the later deployment, whose instances share entries', async () => {
      const first = await startBuilt(one.url);
      await ask(first.url, PATH);
      await isStored(1);
      const second = await startBuilt(other.url);
      const warnings = ({ logs }: typeof first) => logs().filter(({ level }) => level === 'warn');
      expect(warnings(second)).toContainEqual(
        expect.objectContaining({
          msg: expect.stringContaining('redis.keyPrefix') as string,
          keyPrefix: 'mistake:',
          upstream: other.url,
          other: one.url,
        }),
      );
      expect(warnings(first).filter(({ msg }) => String(msg).includes('redis.keyPrefix'))).toEqual([]);
      expect(numberIn(await ask(second.url, PATH))).toBe(2);
      await isStored(2);
      const third = await startBuilt(other.url);
      const shared = await ask(third.url, PATH);
      expect(numberIn(shared)).toBe(2);
      expect(shared.headers['cache-status']).toContain('detail=redis');
      expect(other.askedFor(HANDLE)).toBe(1);
    });

    test('ignore the records of a stopped deployment', async () => {
      const first = await startAt(one.url, env);
      await first.ask(PATH);
      await isStored(1);
      await first.close();
      await redis.client.del('mistake:upstream');
      expect(numberIn(await (await startAt(other.url, env)).ask(PATH))).toBe(2);
    });

    test('leave redis.keyPrefix to the first deployment when Redis loses all data', async () => {
      const first = await startAt(one.url, env);
      await redis.client.flushall();
      await expect.poll(() => redis.client.get('mistake:upstream')).toBe(one.url);
      const second = await startAt(other.url, env);
      expect(numberIn(await first.ask(PATH))).toBe(1);
      expect(numberIn(await second.ask(PATH))).toBe(2);
    });

    test('keep the records in memory when Redis loses all data', async () => {
      const first = await startAt(one.url, env);
      await first.ask(PATH);
      await isStored(1);
      await redis.client.flushall();
      await expect.poll(() => redis.client.get('mistake:upstream')).toBe(one.url);
      // A purge waits until what followed the loss has been published.
      await request(first.app.admin).post('/purge').send({ handle: '21.T11998/another' }).expect(200);
      one.fail('error');
      expect(numberIn(await first.ask(PATH))).toBe(1);
    });

    test('keep the records in Redis when it evicts only the owner of redis.keyPrefix', async () => {
      const first = await startAt(one.url, env);
      await first.ask(PATH);
      await isStored(1);
      await redis.client.del('mistake:upstream');
      await expect.poll(() => redis.client.get('mistake:upstream')).toBe(one.url);
      expect(await cacheStatusOf(await startAt(one.url, env))).toContain('detail=redis');
    });
  });
});
