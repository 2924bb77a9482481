// Promises of src/cache/coherence/README.md, checked on the built program.
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { type BuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { ask } from '../support/ask.js';
import { builtCli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/promise';
const PATH = `/api/handles/${HANDLE}`;

async function startOwnRedis(extra: string[] = []): Promise<RedisServer> {
  const redis = await startRedis(extra);
  onTestFinished(() => {
    redis.thaw();
    return redis.stop();
  });
  return redis;
}

const start = (redis: RedisServer, env: Record<string, string> = {}): Promise<BuiltProxy> =>
  startConnectedProxy({
    UPSTREAM_URL: demo.url,
    REDIS_URL: redis.url,
    REDIS_KEY_PREFIX: 'promise:',
    ...env,
  });

describeWithRedis('built program with Redis', () => {
  test('rejects writes during a Redis outage with redis.disconnectedWrites: reject', async () => {
    const redis = await startOwnRedis();
    const proxy = await start(redis, { REDIS_DISCONNECTED_WRITES: 'reject' });
    demo.put(HANDLE, numbered(1));
    const isWritten = (count: number) =>
      expect.poll(async () => (await putNumbered(proxy.url, PATH, count)).status).toBe(200);
    await isWritten(2);
    redis.freeze();
    const refused = await putNumbered(proxy.url, PATH, 3);
    expect(refused.status).toBe(503);
    expect(refused.text).toContain('cannot be confirmed');
    expect(numberIn(await ask(demo.url, PATH))).toBe(2);
    redis.thaw();
    // Writes are accepted once the lease is renewed.
    await isWritten(4);
    expect(numberIn(await ask(proxy.url, PATH))).toBe(4);
  });

  test('leaves the member list on SIGTERM', async () => {
    const redis = await startOwnRedis();
    const client = new Redis(redis.url);
    onTestFinished(() => {
      client.disconnect();
    });
    const members = async (): Promise<string[]> =>
      (await client.zrange('promise:members', '0', '-1')).filter((member) => !member.startsWith('run:'));
    const proxies = await Promise.all([start(redis), start(redis)]);
    await expect.poll(members).toHaveLength(2);
    await proxies[1].stop();
    // If the machine stalled, the other instance may have to join again.
    expect((await members()).length).toBeLessThanOrEqual(1);
  });

  test('warns once when Redis may evict any key, as check-config --probe does', async () => {
    const redis = await startOwnRedis(['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru']);
    const proxy = await start(redis);
    const warnings = () => proxy.logs().filter(({ policy }) => policy !== undefined);
    await expect.poll(warnings).toMatchObject([{ policy: 'allkeys-lru' }]);
    const env = { UPSTREAM_URL: demo.url, REDIS_URL: redis.url };
    const { code, stdout } = await builtCli(['check-config', '--probe'], env);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Warning +maxmemory-policy allkeys-lru may evict locks or coordination keys\n/);
    expect(stdout).toMatch(/Remedy +set maxmemory-policy to noeviction or volatile-lru\n/);
  });

  test('logs a superfluous password for Redis once, as JSON', async () => {
    const redis = await startOwnRedis();
    const proxy = await start(redis, { REDIS_URL: redis.url.replace('//', '//:superfluous@') });
    const warnings = () => proxy.logs().filter(({ msg }) => msg === 'warning of a library');
    await expect
      .poll(warnings)
      .toMatchObject([
        { level: 'warn', text: expect.stringContaining('does not require a password') as string },
      ]);
    expect(proxy.output()).not.toMatch(/^[^{]|superfluous/m);
  });
});
