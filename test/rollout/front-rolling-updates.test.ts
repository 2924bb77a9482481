// A rolling update behind each web server of config/examples: two instances go through three restarts under
// load with writes.
import { afterAll, beforeAll, expect } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { freePort } from '../support/free-port.js';
import { itWithProgram } from '../support/programs.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { updateOneByOne } from '../support/rolling-update.js';
import type { InstancePlace } from '../support/tls-front.js';

/** Number of rounds, each with three restarts. */
const ROUNDS = Number(process.env['ROLLING_UPDATES'] ?? 1);
const order = Array.from({ length: ROUNDS }, () => [0, 1, 0]).flat();

const placeOf = async (): Promise<InstancePlace> => ({ port: await freePort(), adminPort: await freePort() });

const demo = await startDemoServer();

describeWithRedis('rolling update of two instances', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const update = async (front: 'nginx' | 'caddy' | 'apache2' | 'haproxy'): Promise<string[]> =>
    updateOneByOne({ demo, redis, places: [await placeOf(), await placeOf()], order, front });

  for (const name of ['nginx', 'apache2', 'haproxy'] as const) {
    itWithProgram(name, `loses no request behind ${name}, and returns no old record`, async () => {
      expect(await update(name)).toEqual([]);
    });
  }

  itWithProgram('caddy', 'loses no read behind caddy, and only writes that meet a closed port', async () => {
    // Caddy 2.6 cannot resend the body of a write.
    expect((await update('caddy')).filter((failure) => !/^Error: PUT \S+ 502/.test(failure))).toEqual([]);
  });

  itWithProgram(
    'caddy',
    'loses no write behind caddy that checks /readyz, with server.shutdownDelay',
    async () => {
      const place = await placeOf();
      const places = [place, { ...place, host: '127.0.0.2' }];
      const env = { SERVER_SHUTDOWN_DELAY: '2s' };
      expect(await updateOneByOne({ demo, redis, places, order, front: 'caddy', env })).toEqual([]);
    },
  );
});
