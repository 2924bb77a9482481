import { describe, expect, it } from 'vitest';
import {
  concernsOneCommand,
  redisReason,
  redisRemedy,
  serverVersion,
  timeoutError,
} from '../../src/cache/redis/errors.js';

describe('the remedy for an error of Redis', () => {
  it.each([
    ['connect ECONNREFUSED 127.0.0.1:6379', 'check that Redis runs at redis.url'],
    ['read ECONNRESET', 'check that Redis runs at redis.url'],
    ['getaddrinfo ENOTFOUND redis', 'check the host name in redis.url'],
    ['WRONGPASS invalid username-password pair', 'check the user and the password in redis.url'],
    ['self-signed certificate in certificate chain', 'set redis.caFile'],
    ['unable to verify the first certificate', 'set redis.caFile'],
    ['certificate has expired', 'renew the certificate'],
    ['certificate is not yet valid', 'check the clocks'],
    [
      "Hostname/IP does not match certificate's altnames: IP: 127.0.0.1",
      'use a name of its certificate in redis.url',
    ],
    ['Command timed out', 'look for a slow Redis or network'],
    [timeoutError().message, 'look for a slow Redis or network'],
    ['ERR Unknown Redict command called from script', 'rename-command'],
    ['a web server responds there, not Redis', 'check redis.url'],
    [
      'Client network socket disconnected before secure TLS connection was established',
      'check whether redis.url should be redis or rediss',
    ],
  ])('for %s names the key to check', (reason, remedy) => {
    expect(redisRemedy(reason, 'redis.url')).toContain(remedy);
  });
});

const DIGEST = 'b901e04fda9a5a879a6e9207b7bfa9413354027f';
const BY_REDIS_6 = `ERR Error running script (call to f_${DIGEST}): @user_script:12: @user_script: 12: `;
const AT = `script: ${DIGEST}, on @user_script:12.`;

describe('a command that a script may not run', () => {
  it.each([
    ['Redis 6.0', `${BY_REDIS_6}The user executing the script can't run this command or subcommand`],
    ['Redis 6.0', `${BY_REDIS_6}-OOM command not allowed when used memory > 'maxmemory'.`],
    ['Redis 7.0', `ERR The user executing the script can't run this command or subcommand ${AT}`],
    [
      'Redis 7.0',
      `ERR The user executing the script can't publish to the channel mentioned in the command ${AT}`,
    ],
    ['Redis 8.0', `ERR ACL failure in script: User u has no permissions to run the 'incr' command ${AT}`],
    ['Valkey 8.1', `ERR ACL failure in script: No permissions to access a key ${AT}`],
    ['Valkey 9.1', `ERR ACL failure in script: No permissions to access a key script: on @user_script:12.`],
  ])('is no loss of Redis, and its reason names neither script nor line (%s)', (_server, reply) => {
    expect(concernsOneCommand(new Error(reply))).toBe(true);
    expect(redisReason(new Error(reply))).toMatch(/^(?:NOPERM|OOM) (?!.*script:? ?(?:b901|on|12|\())/);
  });
});

it('names another server for a Redis before version 5, whose scripts may not write after they have read the clock', () => {
  const reply = `${BY_REDIS_6}Write commands not allowed after non deterministic commands. Call redis.replicate_commands()`;
  expect(redisRemedy(redisReason(new Error(reply)), 'redis.url')).toContain('use Redis 7 or newer');
});

describe('the version of a server', () => {
  it.each([
    ['8.0.2', ['redis_version:8.0.2', 'gcc_version:14.2.0']],
    [
      'valkey 9.1.2',
      ['redis_version:7.2.4', 'server_name:valkey', 'valkey_version:9.1.2', 'gcc_version:16.2.0'],
    ],
    ['redict 7.3.6', ['redict_version:7.3.6', 'redict_mode:standalone', 'redis_version:7.2.4']],
  ])('is %s, not that of the Redis that it resembles', (version, lines) => {
    expect(serverVersion(['# Server', ...lines, 'run_id:1'].join('\r\n'))).toBe(version);
  });
});
