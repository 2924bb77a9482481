// The fence of a write with an unknown outcome lasts for upstream.writeTimeout, 2 s in the queue and 15 s.
import { describe, expect, test } from 'vitest';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { type MockUpstream, PATH, mockUpstream, recordOf } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

interface World {
  upstream: MockUpstream;
  proxy: Proxy;
}

async function writeWithUnknownEnd(env: Record<string, string> = {}): Promise<World> {
  const upstream = mockUpstream(recordOf());
  mockWrites({ status: 0, error: 'ECONNRESET' });
  const proxy = await startProxy(env);
  await proxy.ask(PATH, { method: 'PUT', body: '[]' });
  return { upstream, proxy };
}

/** Whether the response to the first of two reads was stored. */
async function isStored({ upstream, proxy }: World): Promise<boolean> {
  await proxy.ask(PATH);
  const { asked } = upstream;
  await proxy.ask(PATH);
  return upstream.asked === asked;
}

describe('fence of a write with an unknown outcome', () => {
  test('prevents loaded records from being stored for 47 s by default', async () => {
    const world = await writeWithUnknownEnd();
    expect(await isStored(world)).toBe(false);
    world.proxy.pass(46_999);
    expect(await isStored(world)).toBe(false);
    world.proxy.pass(1);
    expect(await isStored(world)).toBe(true);
  });

  test('lasts for the configured queue and write timeouts plus 15 s', async () => {
    const world = await writeWithUnknownEnd({
      UPSTREAM_WRITE_TIMEOUT: '5s',
      ...fixed({ upstream: { queueTimeoutMs: 1000 } }),
    });
    world.proxy.pass(20_999);
    expect(await isStored(world)).toBe(false);
    world.proxy.pass(1);
    expect(await isStored(world)).toBe(true);
  });
});
