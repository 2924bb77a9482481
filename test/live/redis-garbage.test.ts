// Foreign keys and messages in Redis: the proxy ignores them.
import { partial } from '../support/partial.js';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { keyPrefixOf, groupNames } from '../../src/cache/redis/namespace.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { describeWithRedis } from '../support/redis-server.js';
import { useRedis } from '../support/use-redis.js';
import { metric, startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/garbage';
const OTHER = '21.T11998/another';
const pathOf = (handle: string): string => `/api/handles/${handle}`;

describeWithRedis('foreign data in Redis', () => {
  const redis = useRedis();
  let prefix: string;
  beforeAll(() => {
    prefix = keyPrefixOf(
      [partial({ kind: 'handle-server', url: demo.url, prefixes: ['*'] })],
      partial({ redis: partial({ url: redis.url }), upstream: partial({ caseSensitive: false }) }),
    );
  });
  beforeEach(async () => {
    await redis.client.flushall();
    demo.put(HANDLE, numbered(1));
    demo.put(OTHER, numbered(2));
    demo.reset();
  });
  const entryOf = (handle: string): string => groupNames(prefix, handle.toUpperCase())[0];
  const stateOf = (handle: string): string => groupNames(prefix, handle.toUpperCase())[1];
  const start = (): Promise<Proxy> => startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });

  test('is not served when it is the entry of a different handle', async () => {
    const one = await start();
    await one.ask(pathOf(OTHER));
    await expect.poll(() => redis.client.keys('*:entry:*')).toHaveLength(1);
    const [name = ''] = await redis.client.keys('*:entry:*');
    await redis.client.copy(name, entryOf(HANDLE));
    expect(numberIn(await (await start()).ask(pathOf(HANDLE)))).toBe(1);
  });

  test('is ignored when it is an invalid message', async () => {
    const messages = [
      '',
      'x',
      'forget',
      `1 some-instance - forget - 0`,
      `-1 some-instance - forget - 0 ${HANDLE}`,
      `1e99 some-instance - forget - 0 ${HANDLE}`,
      `99999999999999999999 some-instance - forget - 0 ${HANDLE}`,
      `1 some-instance - raise w 99999999999999999999 ${HANDLE}`,
      '1 some-instance - ban hard NaN ',
      '1 some-instance - __proto__ - 0 x',
      `1 some-instance - unheard - 0 ${HANDLE}`,
      `some-instance ${'x'.repeat(100_000)}`,
      Buffer.from([0xff, 0x00, 0xfe]),
    ];
    const proxy = await start();
    for (const [at, message] of messages.entries()) {
      const said = `after ${String(message).slice(0, 60)}`;
      await proxy.ask(pathOf(HANDLE));
      expect(await redis.client.publish(`${prefix}0:messages`, message), said).toBeGreaterThan(0);
      for (let count = 0; count < 3; count++) {
        expect(numberIn(await proxy.ask(pathOf(HANDLE))), said).toBe(1 + at);
      }
      expect((await putNumbered(proxy.url, pathOf(HANDLE), 2 + at)).status, said).toBe(200);
      expect(numberIn(await proxy.ask(pathOf(HANDLE))), said).toBe(2 + at);
    }
    expect(await metric(proxy, 'handle_proxy_redis_up')).toBe(1);
  });

  test.each(['x', '-5', '1e308', '12abc', 'NaN', '99999999999999999999'])(
    'hides no write when it is a state with the number %j',
    async (number) => {
      for (const name of [stateOf(HANDLE), `${prefix}{bans}:state`])
        await redis.client.hset(name, 'seq', number);
      const [one, other] = [await start(), await start()];
      await other.ask(pathOf(HANDLE));
      expect((await putNumbered(one.url, pathOf(HANDLE), 5)).status).toBe(200);
      expect(numberIn(await other.ask(pathOf(HANDLE)))).toBe(5);
      expect(numberIn(await (await start()).ask(pathOf(HANDLE)))).toBe(5);
    },
  );

  test.each<[string, (name: string) => string]>([
    ['an entry', entryOf],
    ['a state', stateOf],
    ['the list of bans', () => `${prefix}{bans}:state`],
    ['the list of members', () => `${prefix}members`],
  ])('hides no write when it gives the key of %s a wrong type', async (_what, nameOf) => {
    const [one, other] = [await start(), await start()];
    // As one transaction, because the proxies write to the same key several times a second.
    await redis.client.multi().del(nameOf(HANDLE)).lpush(nameOf(HANDLE), 'value').exec();
    await other.ask(pathOf(HANDLE));
    await one.ask(pathOf(HANDLE));
    for (const count of [6, 7]) {
      expect((await putNumbered(one.url, pathOf(HANDLE), count)).status).toBe(200);
      expect(numberIn(await one.ask(pathOf(HANDLE)))).toBe(count);
      expect(numberIn(await other.ask(pathOf(HANDLE)))).toBe(count);
    }
  });
});
