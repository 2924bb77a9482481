// Starts a redis-server for all tests of a suite, and a client of it.
import { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { type RedisServer, startRedis } from './redis-server.js';

/** Call in a `describe`. The members exist from the first test on, so do not destructure the result before. */
export function useRedis(): RedisServer & { client: Redis } {
  const used = {} as RedisServer & { client: Redis };
  beforeAll(async () => {
    const server = await startRedis();
    Object.assign(used, server, { client: new Redis(server.url) });
  });
  afterAll(async () => {
    used.client.disconnect();
    await used.stop();
  });
  return used;
}
