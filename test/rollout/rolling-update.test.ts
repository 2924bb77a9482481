// A rolling update: three instances behind HAProxy restart in sequence, under load with writes.
import { afterAll, beforeAll, expect } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { freePort } from '../support/free-port.js';
import { itWithProgram, testWithReusePort } from '../support/programs.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { updateOneByOne } from '../support/rolling-update.js';
import type { InstancePlace } from '../support/tls-front.js';

/**
 * Number of updates of all three instances. Restarts take seconds, so a higher number needs an idle machine.
 */
const UPDATES = Number(process.env['ROLLING_UPDATES'] ?? 1);
const INSTANCES = [0, 1, 2];
const order = Array.from({ length: UPDATES }, () => INSTANCES).flat();

const placesAt = (port?: number): Promise<InstancePlace[]> =>
  Promise.all(
    INSTANCES.map(async () => ({
      port: port ?? (await freePort()),
      adminPort: await freePort(),
    })),
  );

const demo = await startDemoServer();

describeWithRedis('rolling update of three instances behind HAProxy', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  itWithProgram('haproxy', 'causes no failed request and no old record', async () => {
    expect(await updateOneByOne({ demo, redis, places: await placesAt(), order, front: 'haproxy' })).toEqual(
      [],
    );
  });

  testWithReusePort('causes no failed request on a shared port (server.reusePort)', async () => {
    const [places, env] = [await placesAt(await freePort()), { SERVER_REUSE_PORT: 'true' }];
    expect(await updateOneByOne({ demo, redis, places, order, front: 'haproxy', env })).toEqual([]);
  });
});
