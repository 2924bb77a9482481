// Lists from the mirrors of two instances on a real Redis, of which none may lack an acknowledged write.
import { expect, it, onTestFinished } from 'vitest';
import { DEMO_PASSWORD, DEMO_PREFIX } from '../../src/dev-server/seed.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';

const server = await startDemoServer();
const env = {
  MIRROR_PREFIXES: DEMO_PREFIX,
  MIRROR_USER: `300:${DEMO_PREFIX}/USER01`,
  MIRROR_PASSWORD: DEMO_PASSWORD,
  MIRROR_PUBLIC_LISTS: 'true',
};

const statusOf = async (proxy: Proxy) =>
  (await proxy.ask(`/api/handles?prefix=${DEMO_PREFIX}&page=0&pageSize=1`)).headers['cache-status'];
const HIT = 'handle-resolver-proxy; hit; detail=mirror';
/** More lists than can be read until the next list of a mirror. */
const MAX_LISTS = 10_000;
const RELAYED = 'handle-resolver-proxy; fwd=bypass';

/** Starts two instances, and waits until both serve lists from their mirrors. */
async function startMirrors(more: Record<string, string> = {}) {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const start = () =>
    startSharing({ redisUrl: redis.url, upstreamUrl: server.url, env: { ...env, ...more } });
  const [one, other] = await Promise.all([start(), start()]);
  for (const proxy of [one, other]) await expect.poll(() => statusOf(proxy)).toBe(HIT);
  return { redis, one, other };
}

describeWithRedis('lists from two mirrors', () => {
  it.each([
    [
      'the record interface',
      (url: string) => putNumbered(url, `/api/handles/${DEMO_PREFIX}/CREATED?overwrite=true`, 1),
    ],
    [
      'ePIC v2',
      (url: string) =>
        fetch(`${url}/api/v2/handles/${DEMO_PREFIX}/V2`, {
          method: 'PUT',
          headers: WRITE_HEADERS,
          body: '[{"type":"URL","parsed_data":"https://example.org/"}]',
        }),
    ],
  ])('are relayed by both after a write through %s of one', async (_interface, write) => {
    const { one, other } = await startMirrors();
    expect((await write(one.url)).status).toBeLessThan(300);
    expect([await statusOf(one), await statusOf(other)]).toEqual([RELAYED, RELAYED]);
  });

  it('contain the handle of each acknowledged creation, and not of a deletion', async () => {
    const { one, other } = await startMirrors({ MIRROR_INTERVAL: '1s', DELETION_HANDLES: 'true' });
    /** Returns the handles of the first list from the mirror; the server refuses the relayed ones. */
    const listFromMirror = async ({ ask }: Proxy): Promise<string[]> => {
      for (let asked = 0; asked < MAX_LISTS; asked++) {
        const { text, headers } = await ask(`/api/handles?prefix=${DEMO_PREFIX}`);
        if (headers['cache-status'] === HIT) return (JSON.parse(text) as { handles: string[] }).handles;
      }
      throw new Error('no list came from the mirror');
    };
    for (let count = 0; count < 4; count++) {
      const [writer, reader] = count % 2 === 0 ? [one, other] : [other, one];
      const name = `${DEMO_PREFIX}/LISTED-${count}`;
      await putNumbered(writer.url, `/api/handles/${name}`, 1);
      expect(await listFromMirror(reader)).toContain(name);
      await writer.ask(`/api/handles/${name}`, { method: 'DELETE', headers: WRITE_HEADERS });
      expect(await listFromMirror(reader)).not.toContain(name);
    }
  });

  it('are relayed while Redis is away, and after a write that one of them missed', async () => {
    const { redis, one, other } = await startMirrors();
    await redis.stop();
    // The lease runs for up to two seconds more, and a writer would wait for its end.
    for (const proxy of [one, other]) await expect.poll(() => statusOf(proxy)).toBe(RELAYED);
    const writing = putNumbered(one.url, `/api/handles/${DEMO_PREFIX}/MISSED`, 1);
    await redis.restart();
    expect((await writing).status).toBeLessThan(300);
    await redisIs(other, 1);
    expect(await statusOf(other)).toBe(RELAYED);
  });
});
