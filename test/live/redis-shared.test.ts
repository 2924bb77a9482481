// Proxies on one Redis: each serves records that the other has loaded.
import { beforeEach, describe, expect, test } from 'vitest';
import type { Proxy } from '../support/proxy.js';
import { startDemoServer } from '../support/demo.js';
import { LITTLE_PATIENCE, describeWithRedis } from '../support/redis-server.js';
import { useRedis } from '../support/use-redis.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/page';
const PATH = `/api/handles/${HANDLE}`;

const recordOf = (path: string): unknown[] => [
  { index: 1, type: 'URL', data: { format: 'string', value: `https://example.org/${path}` } },
];

describeWithRedis('proxies on one Redis', () => {
  const redis = useRedis();
  beforeEach(async () => {
    await redis.client.flushall();
    demo.put(HANDLE, recordOf('first'));
    demo.reset();
  });

  const start = (env: Record<string, string> = {}): Promise<Proxy> =>
    startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env });
  const isStored = () => expect.poll(() => redis.client.keys('*:entry:*')).toHaveLength(1);

  test.each([
    ['a record', PATH, 200],
    ['a record with a non-ASCII handle', '/api/handles/21.T11998/gr%C3%B6%C3%9Fe-%E6%BC%A2%E5%AD%97', 200],
    ['a handle with braces, which Redis Cluster interprets,', '/api/handles/21.T11998/%7Ba%7D%7Bb', 404],
    ['a handle that does not exist', '/api/handles/21.T11998/nobody', 404],
    ['a record without values', '/api/handles/21.T11998/empty', 200],
  ])('send no upstream request to serve %s that the other proxy has loaded', async (_what, path, status) => {
    const [one, other] = await Promise.all([start(), start()]);
    const loaded = await one.ask(path);
    await isStored();
    const shared = await other.ask(path);
    expect([loaded.status, shared.status]).toEqual([status, status]);
    expect(shared.text).toBe(loaded.text);
    expect(shared.headers['cache-status']).toContain('hit');
    expect(shared.headers['cache-status']).toContain('detail=redis');
    expect(demo.asked).toBe(1);
  });

  test("replace each other's entries after an authoritative load", async () => {
    const [one, other] = await Promise.all([start(), start()]);
    await Promise.all([one.ask(PATH), other.ask(PATH)]);
    demo.put(HANDLE, recordOf('second'));
    expect((await one.ask(`${PATH}?auth=true`)).text).toContain('/second');
    await expect.poll(async () => (await other.ask(PATH)).text).toContain('/second');
    expect((await one.ask(PATH)).text).toContain('/second');
    expect(demo.askedFor(HANDLE), 'the others find it in Redis').toBeLessThanOrEqual(3);
  });

  test('leave entries in Redis and memory fresh through a Redis outage', async () => {
    const [one, other] = await Promise.all([start(LITTLE_PATIENCE), start(LITTLE_PATIENCE)]);
    await one.ask(PATH);
    await isStored();
    redis.freeze();
    await redisIs(other, 0);
    other.pass(6000);
    redis.thaw();
    await Promise.all([redisIs(one, 1), redisIs(other, 1)]);
    for (const proxy of [one, other]) expect((await proxy.ask(PATH)).status).toBe(200);
    expect(demo.askedFor(HANDLE)).toBe(1);
  });

  test('answer a different query, in a different spelling, from a shared record', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    await one.ask(PATH);
    await isStored();
    const answer = await other.ask('/api/handles/21.t11998%2FPAGE?type=url');
    expect(JSON.parse(answer.text)).toMatchObject({ handle: '21.t11998/PAGE', values: [{ type: 'URL' }] });
    expect(demo.asked).toBe(1);
  });

  test('evict the record on every instance after an authoritative 404 (negative cache)', async () => {
    const [one, other] = await Promise.all([start(), start()]);
    await one.ask(PATH);
    await isStored();
    expect((await other.ask(PATH)).status).toBe(200);
    demo.remove(HANDLE);
    expect((await one.ask(`${PATH}?auth=true`)).status).toBe(404);
    await expect.poll(async () => (await other.ask(PATH)).status).toBe(404);
    expect((await one.ask(PATH)).status).toBe(404);
  });

  test('store entries in Redis with an expiry', async () => {
    const one = await start({ CACHE_FOUND_MAX_TTL: '10s', CACHE_STALE_IF_ERROR: '20s' });
    await one.ask(PATH);
    await isStored();
    const [name] = await redis.client.keys('*:entry:*');
    const lifeMs = await redis.client.pttl(name!);
    expect(lifeMs).toBeGreaterThan(25_000);
    expect(lifeMs).toBeLessThanOrEqual(30_000);
  });

  test('share nothing when their values of redis.keyPrefix differ', async () => {
    const [one, other] = await Promise.all([start(), start({ REDIS_KEY_PREFIX: 'other:' })]);
    await one.ask(PATH);
    await isStored();
    await other.ask(PATH);
    expect(demo.asked).toBe(2);
  });

  test.each([
    ['of the upstream', {}],
    ['of redis.keyPrefix', { REDIS_KEY_PREFIX: 'ours:' }],
  ])(
    'share nothing under the prefix %s when their values of upstream.caseSensitive differ',
    async (_which, env) => {
      const [folding, exact] = [await start(env), await start({ ...env, UPSTREAM_CASE_SENSITIVE: 'true' })];
      await folding.ask(PATH);
      await isStored();
      const answer = await exact.ask(PATH.toUpperCase().replace('/API/HANDLES', '/api/handles'));
      expect(answer.headers['cache-status']).not.toContain('hit');
      expect(demo.askedFor(HANDLE)).toBe(2);
    },
  );

  describe('with an invalid entry in Redis', () => {
    const damages: [what: string, damage: (entry: Buffer) => Buffer][] = [
      [
        'an entry in a different format version',
        (entry) => Buffer.concat([entry.subarray(0, 3), Buffer.of(250), entry.subarray(4)]),
      ],
      ['an empty value', () => Buffer.alloc(0)],
      ['foreign text', () => Buffer.from('{"handle":"21.T11998/page"}')],
      ['half of an entry', (entry) => entry.subarray(0, entry.length / 2)],
      ['an entry followed by extra bytes', (entry) => Buffer.concat([entry, entry])],
    ];

    test.each(damages)('reload the record when Redis contains %s', async (_what, damage) => {
      const one = await start();
      await one.ask(PATH);
      await isStored();
      const [name] = await redis.client.keys('*:entry:*');
      const damaged = damage((await redis.client.getBuffer(name!))!);
      await redis.client.set(name!, damaged);

      const other = await start();
      expect((await other.ask(PATH)).status).toBe(200);
      expect(demo.asked).toBe(2);

      await expect.poll(() => redis.client.getBuffer(name!)).not.toEqual(damaged);
      const third = await start();
      expect((await third.ask(PATH)).headers['cache-status']).toContain('detail=redis');
      expect(demo.asked).toBe(2);
    });

    test('reload the record when its key has a wrong type', async () => {
      const one = await start();
      await one.ask(PATH);
      await isStored();
      const [name] = await redis.client.keys('*:entry:*');
      await redis.client.del(name!);
      await redis.client.lpush(name!, 'a list');
      const other = await start();
      expect((await other.ask(PATH)).status).toBe(200);
      await expect.poll(() => redis.client.type(name!)).toBe('string');
    });
  });
});
