// Records loaded during a Redis outage: with redis.disconnectedMaxAge: 0s, they are reloaded afterwards.
import { expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startConnectedProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered } from '../support/demo-writes.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';

const LOADED = '21.T11998/lost-load';
const PROBE = '21.T11998/lost-probe';

describeWithRedis('record loaded during a Redis outage', () => {
  test('is reloaded when Redis returns, with redis.disconnectedMaxAge: 0s', async () => {
    const demo = await startDemoServer();
    const redis = await startRedis();
    onTestFinished(() => {
      redis.thaw();
      return redis.stop();
    });
    const proxy = await startConnectedProxy({
      UPSTREAM_URL: demo.url,
      REDIS_URL: redis.url,
      REDIS_KEY_PREFIX: 'lost-load:',
      REDIS_DISCONNECTED_MAX_AGE: '0s',
    });
    const numberOf = async (handle: string) => numberIn(await ask(proxy.url, `/api/handles/${handle}`));
    let count = 0;
    /** Returns whether the probe is served from the cache, which requires a lease. */
    const isCached = async (): Promise<boolean> => {
      demo.put(PROBE, numbered(++count));
      return (await numberOf(PROBE)) !== count;
    };
    demo.put(LOADED, numbered(1));
    redis.freeze();
    await expect.poll(async () => (await isCached()) || (await isCached())).toBe(false);
    expect(await numberOf(LOADED)).toBe(1);
    redis.thaw();
    await expect.poll(isCached).toBe(true);
    demo.put(LOADED, numbered(2));
    expect(await numberOf(LOADED)).toBe(2);
  });
});
