// Redis stops during a write load: no old record is served for longer than promised.
import '../support/real-sockets.js';
import { afterAll, beforeAll, test } from 'vitest';
import { writeThroughOutage } from '../support/outage-writes.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

describeWithRedis('a Redis stopped for seconds', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test('causes no old record for longer than redis.disconnectedMaxAge and its detection', async () => {
    const away = (): unknown => redis.stop();
    const back = (): unknown => redis.restart();
    await writeThroughOutage({ name: 'stopped', redis, away, back });
  }, 40_000);
});
