import { describe, expect, it } from 'vitest';
import { redisRemedy } from '../../src/cache/redis/errors.js';

describe('the remedy for an error of Redis', () => {
  it.each([
    ['connect ECONNREFUSED 127.0.0.1:6379', 'check that Redis runs at redis.url'],
    ['read ECONNRESET', 'check that Redis runs at redis.url'],
    ['getaddrinfo ENOTFOUND redis', 'check the host name in redis.url'],
    ['WRONGPASS invalid username-password pair', 'check the user and the password in redis.url'],
  ])('for %s names the key to check', (reason, remedy) => {
    expect(redisRemedy(reason, 'redis.url')).toContain(remedy);
  });
});
