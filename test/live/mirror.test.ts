// Two instances on a real Redis that mirror the same prefix of the demo server.
import { expect, it, onTestFinished } from 'vitest';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { startDemoServer } from '../support/demo.js';
import { DEMO_PASSWORD, DEMO_PREFIX } from '../../src/dev-server/seed.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';
import { describeTwoProxies, startSharing } from '../support/sharing-proxies.js';
import type { Proxy } from '../support/proxy.js';

const NAMES = Array.from({ length: 100 }, (_, at) => `${DEMO_PREFIX}/MIRRORED-${at}`);
const server = await startDemoServer();
for (const name of NAMES) server.put(name, numbered(1));

/** Waits until each handle has an entry in memory. */
async function whenRead(proxy: Proxy): Promise<void> {
  for (const name of NAMES)
    await expect
      .poll(() => proxy.app.operations.inspect(name))
      .toContainEqual(expect.objectContaining({ tier: 'memory' }));
}

const ENV = {
  MIRROR_PREFIXES: DEMO_PREFIX,
  MIRROR_USER: `300:${DEMO_PREFIX}/USER01`,
  MIRROR_PASSWORD: DEMO_PASSWORD,
};

describeTwoProxies(
  {
    upstreamUrl: server.url,
    env: { ...ENV, MIRROR_INTERVAL: '1s' },
  },
  (two) => {
    it('mirrors every handle of the prefix on each instance, and serves no old record after a write', async () => {
      const [name = ''] = NAMES;
      await Promise.all([whenRead(two.one), whenRead(two.other)]);
      expect((await putNumbered(two.one.url, `/api/handles/${name}`, 2)).status).toBe(200);
      for (const proxy of [two.one, two.other])
        expect(numberIn(await proxy.ask(`/api/handles/${name}`))).toBe(2);
    });
  },
);

describeWithRedis('an instance that starts after another instance', () => {
  it('reads the mirrored records from Redis, not from the Handle server', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    // Entries of Redis are young enough for half of the interval.
    const env = { ...ENV, MIRROR_INTERVAL: '1h' };
    const start = (): Promise<Proxy> => startSharing({ redisUrl: redis.url, upstreamUrl: server.url, env });
    server.reset();
    const reads = (): number => NAMES.reduce((all, name) => all + server.askedFor(name), 0);
    await whenRead(await start());
    expect(reads()).toBe(NAMES.length);
    await whenRead(await start());
    expect(reads()).toBe(NAMES.length);
  });
});
