// A writer killed after the upstream commit and before any invalidation. The write was never acknowledged,
// so the old record is correct until the fence expires, and stale afterwards.
import '../support/real-sockets.js';
import { beforeEach, expect, test } from 'vitest';
import { type BuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { describeWithRedis } from '../support/redis-server.js';
import { useRedis } from '../support/use-redis.js';
import type { Proxy } from '../support/proxy.js';
import { startSharing } from '../support/sharing-proxies.js';
import { HANDLE, PATH } from '../support/upstream.js';

const demo = await startDemoServer();
const env = { UPSTREAM_WRITE_TIMEOUT: '500ms' };
/** Upper bound of a fence lifetime. */
const FENCE_LIFE_MS = 25_000;

describeWithRedis('killed writer', () => {
  const redis = useRedis();
  beforeEach(async () => {
    await redis.client.flushall();
    demo.put(HANDLE, numbered(1));
    demo.reset();
  });

  const startWriter = (): Promise<BuiltProxy> =>
    startConnectedProxy({ REDIS_URL: redis.url, UPSTREAM_URL: demo.url, ...env });

  /** Writes record 2, and kills the proxy once the upstream has received the record. */
  async function writeAndDie(writer: BuiltProxy): Promise<void> {
    demo.hold.holdReplies('PUT');
    const { size } = demo.hold;
    const written = putNumbered(writer.url, PATH, 2).catch(() => undefined);
    await expect.poll(() => demo.hold.size).toBe(size + 1);
    await writer.stop('SIGKILL');
    demo.hold.sendHeld('PUT');
    await written;
  }

  const entries = (): Promise<string[]> => redis.client.keys('*:entry:*');
  const startOther = (): Promise<Proxy> => startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env });

  test('leaves no old record on any instance after its membership has ended', async () => {
    const [writer, other] = await Promise.all([startWriter(), startOther()]);
    expect(numberIn(await other.ask(PATH))).toBe(1);
    await expect.poll(entries).toHaveLength(1);
    expect(demo.askedFor(HANDLE)).toBe(1);
    await writeAndDie(writer);
    await expect.poll(async () => numberIn(await other.ask(PATH))).toBe(2);
    const late = await startOther();
    await expect.poll(async () => numberIn(await late.ask(PATH))).toBe(2);
  });

  test('leaves no key in Redis that outlives its fence', async () => {
    const [writer, other] = await Promise.all([startWriter(), startOther()]);
    expect(numberIn(await other.ask(PATH))).toBe(1);
    await expect.poll(entries).toHaveLength(1);
    await writeAndDie(writer);
    // The entry may already have expired.
    const [entry = 'none'] = await entries();
    expect(await redis.client.pttl(entry)).toBeLessThan(FENCE_LIFE_MS);
    // Lets the fence expire in memory, and removes the entry and the fence from Redis.
    other.pass(FENCE_LIFE_MS);
    await redis.client.del(entry);
    for (const state of await redis.client.keys('*:state'))
      await redis.client.hdel(state, `f:${HANDLE.toUpperCase()}`);
    expect(numberIn(await other.ask(PATH))).toBe(2);
    await expect.poll(async () => (await other.ask(PATH)).headers['cache-status']).toContain('hit');
    await expect.poll(entries).toHaveLength(1);
  });

  test('lets no instance store a load that started before the write was committed', async () => {
    const [writer, other] = await Promise.all([startWriter(), startWriter()]);
    demo.hold.holdReplies('GET');
    const slow = ask(other.url, PATH);
    await expect.poll(() => demo.hold.size).toBe(1);
    await writeAndDie(writer);
    demo.hold.sendHeld('GET');
    expect(numberIn(await slow), 'asked before the write').toBe(1);
    expect(numberIn(await ask(other.url, PATH))).toBe(2);
    expect(await entries()).toEqual([]);
    const third = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env });
    expect(numberIn(await third.ask(PATH))).toBe(2);
  });
});
