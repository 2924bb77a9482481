// Resolution reports of two instances on one Redis: summed, and complete after an outage.
import request from 'supertest';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { LITTLE_PATIENCE, type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import type { Proxy } from '../support/proxy.js';
import { ReadLedger, reportOf } from '../support/reports.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';

const PREFIX = '21.T11998';
const demo = await startDemoServer();

describeWithRedis('reports of two instances on one Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const start = (keyPrefix: string): Promise<Proxy> =>
    startSharing({
      redisUrl: redis.url,
      upstreamUrl: demo.url,
      env: { REPORTS_ENABLED: 'true', REDIS_KEY_PREFIX: keyPrefix, ...LITTLE_PATIENCE },
    });

  /** Reads existing and missing handles repeatedly, so that prepared responses are counted too. */
  async function load(proxies: readonly Proxy[], ledger: ReadLedger): Promise<void> {
    for (const proxy of proxies) {
      for (let at = 0; at < 30; at++) {
        const handle = `${PREFIX}/${at % 3 === 0 ? `none-${at % 9}` : 'page'}`;
        await proxy.ask(`/api/handles/${handle}`);
        ledger.add(handle, 'record', at % 3 !== 0);
      }
    }
  }

  /** Makes the instances publish, as they do each minute, and returns the report of the last instance. */
  async function reportOfAll(proxies: readonly Proxy[]): Promise<unknown> {
    let last: unknown;
    for (const proxy of proxies) last = await reportOf(proxy, PREFIX);
    return last;
  }

  it('are summed, even after one instance has stopped', async () => {
    const [one, other] = [await start('sum:'), await start('sum:')];
    const ledger = new ReadLedger();
    await load([one, other], ledger);
    await expect.poll(() => reportOfAll([one, other])).toMatchObject(ledger.figures());
    await load([one], ledger);
    await one.close();
    expect(await reportOf(other, PREFIX)).toMatchObject(ledger.figures());
  });

  it('lose nothing and count nothing twice while Redis does not reply', async () => {
    const proxies = [await start('away:'), await start('away:')];
    const ledger = new ReadLedger();
    await load(proxies, ledger);
    await expect.poll(() => reportOfAll(proxies)).toMatchObject(ledger.figures());
    for (let times = 0; times < 2; times++) {
      await load(proxies, ledger);
      redis.freeze();
      // Redis executes these additions when it continues, although no instance waits for the replies any more.
      for (const { app } of proxies)
        expect((await request(app.admin).get(`/reports?prefix=${PREFIX}`).expect(503)).text).toContain(
          'REPORT_UNAVAILABLE',
        );
      await load(proxies, ledger);
      redis.thaw();
      await Promise.all(proxies.map((proxy) => redisIs(proxy, 1)));
      await expect.poll(() => reportOfAll(proxies)).toMatchObject(ledger.figures());
    }
  });
});
