// Redis freezes during a write load: no old record is served for longer than promised.
import '../support/real-sockets.js';
import { afterAll, beforeAll, test } from 'vitest';
import { writeThroughOutage } from '../support/outage-writes.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

describeWithRedis('a Redis frozen for seconds', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test('causes no old record for longer than redis.disconnectedMaxAge and its detection', async () => {
    const away = (): void => {
      redis.freeze();
    };
    const back = (): void => {
      redis.thaw();
    };
    await writeThroughOutage({ name: 'frozen', redis, away, back });
  }, 40_000);
});
