// Two instances on a real Redis that mirror the same prefix of the demo server.
import { expect, it } from 'vitest';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { startDemoServer } from '../support/demo.js';
import { DEMO_PASSWORD, DEMO_PREFIX } from '../../src/dev-server/seed.js';
import { describeTwoProxies } from '../support/sharing-proxies.js';
import type { Proxy } from '../support/proxy.js';

const NAMES = Array.from({ length: 100 }, (_, at) => `${DEMO_PREFIX}/MIRRORED-${at}`);
const server = await startDemoServer();
for (const name of NAMES) server.put(name, numbered(1));

/** Waits until each handle has an entry in memory that was read at the proxy's current time. */
async function whenRead(proxy: Proxy): Promise<void> {
  for (const name of NAMES)
    await expect
      .poll(() => proxy.app.operations.inspect(name))
      .toContainEqual(expect.objectContaining({ tier: 'memory', ageSeconds: 0 }));
}

describeTwoProxies(
  {
    upstreamUrl: server.url,
    env: {
      MIRROR_PREFIXES: DEMO_PREFIX,
      MIRROR_USER: `300:${DEMO_PREFIX}/USER01`,
      MIRROR_PASSWORD: DEMO_PASSWORD,
      MIRROR_INTERVAL: '1s',
    },
  },
  (two) => {
    it('mirrors every handle of the prefix on each instance, and serves no old record after a write', async () => {
      const [name = ''] = NAMES;
      await Promise.all([whenRead(two.one), whenRead(two.other)]);
      expect((await putNumbered(two.one.url, `/api/handles/${name}`, 2)).status).toBe(200);
      for (const proxy of [two.one, two.other])
        expect(numberIn(await proxy.ask(`/api/handles/${name}`))).toBe(2);
    });

    it('reads each mirrored record once for both instances', async () => {
      await Promise.all([whenRead(two.one), whenRead(two.other)]);
      server.reset();
      const reads = (): number => NAMES.reduce((all, name) => all + server.askedFor(name), 0);
      for (const proxy of [two.one, two.other]) {
        proxy.pass(1000);
        await whenRead(proxy);
        expect(reads()).toBe(NAMES.length);
      }
    });
  },
);
