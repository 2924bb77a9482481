// Redis freezes during a write load: the age of old records stays within the promised bound.
import '../support/real-sockets.js';
import { afterAll, beforeAll, test } from 'vitest';
import { writeThroughOutage } from '../support/outage-writes.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

describeWithRedis('Redis frozen for seconds', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test('lets no old record be served beyond redis.disconnectedMaxAge plus the failure detection time', async () => {
    const away = (): void => {
      redis.freeze();
    };
    const back = (): void => {
      redis.thaw();
    };
    await writeThroughOutage({ name: 'frozen', redis, away, back });
  }, 40_000);
});
