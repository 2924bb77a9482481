// Redis stops during a write load: the age of old records stays within the promised bound.
import '../support/real-sockets.js';
import { afterAll, beforeAll, test } from 'vitest';
import { writeThroughOutage } from '../support/outage-writes.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

describeWithRedis('Redis stopped for seconds', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test('lets no old record be served beyond redis.disconnectedMaxAge plus the failure detection time', async () => {
    const away = (): unknown => redis.stop();
    const back = (): unknown => redis.restart();
    await writeThroughOutage({ name: 'stopped', redis, away, back });
  }, 40_000);
});
