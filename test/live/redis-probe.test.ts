// The Redis probe against a server, Sentinels and a cluster, with minimum permissions.
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import type { RedisAddress } from '../../src/cache/redis/connections.js';
import { redisReason, redisRemedy } from '../../src/cache/redis/errors.js';
import { probeRedis } from '../../src/cache/redis/probe.js';
import { startRedisCluster } from '../support/redis-cluster.js';
import { startGuardedRedis } from '../support/redis-sentinel.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';

const RIGHTS = '-@all +@read +@write +eval +evalsha +publish +subscribe +@connection +info +time';

const probe = async (address: Omit<RedisAddress, 'commandTimeoutMs'>): Promise<string | undefined> =>
  (await probeRedis({ ...address, commandTimeoutMs: 2000 }, 'hrp:probe:')).version;

describeWithRedis('Redis probe', () => {
  test('reports the server version with only the permissions named in its remedy', async () => {
    const user = ['--user', 'proxy', 'on', '>secret', '~hrp:*', '&hrp:*', ...RIGHTS.split(' ')];
    const { url, stop } = await startRedis(user);
    onTestFinished(stop);
    expect(await probe({ url: url.replace('//', '//proxy:secret@') })).toMatch(/^(?:[a-z]+ )?\d+\.\d+\.\d+$/);
    const client = new Redis(url);
    expect(await client.dbsize()).toBe(0);
    client.disconnect();
  });

  test.each([
    ['a user without channels', ['~hrp:*', 'resetchannels', ...RIGHTS.split(' ')]],
    ['a user that may not publish', ['~hrp:*', '&hrp:*', ...RIGHTS.replace('+publish ', '').split(' ')]],
    ['a user without a right of a script', ['~hrp:*', '&hrp:*', ...RIGHTS.split(' '), '-setrange']],
    ['a user that may not subscribe', ['~hrp:*', '&hrp:*', ...RIGHTS.replace('+subscribe ', '').split(' ')]],
  ])('fails for %s', async (_what, rights) => {
    const { url, stop } = await startRedis(['--user', 'proxy', 'on', '>secret', ...rights]);
    onTestFinished(stop);
    await expect(probe({ url: url.replace('//', '//proxy:secret@') })).rejects.toThrow(/^NOPERM/);
  });

  test.each(['INFO', 'EVAL', 'EVALSHA', 'TIME', 'PUBLISH'])(
    'fails for a Redis without %s, and names the setting that takes it away',
    async (command) => {
      const { url, stop } = await startRedis(['--rename-command', command, '']);
      onTestFinished(stop);
      const error: unknown = await probe({ url }).catch((failure: unknown) => failure);
      expect(redisRemedy(redisReason(error), 'redis.url')).toContain('rename-command');
    },
  );

  test('reports the version of the Sentinel master', async () => {
    const { sentinels, isSafe, stop } = await startGuardedRedis();
    onTestFinished(stop);
    await isSafe();
    expect(await probe({ sentinels: [`redis://${sentinels}`] })).toMatch(/^(?:[a-z]+ )?\d+\.\d+\.\d+$/);
  });

  test('reports the version of a cluster, and leaves no keys behind', async () => {
    const cluster = await startRedisCluster();
    onTestFinished(cluster.stop);
    const nodes = cluster.nodes.split(',').map((node) => `redis://${node}`);
    expect(await probe({ cluster: nodes })).toMatch(/^(?:[a-z]+ )?\d+\.\d+\.\d+$/);
    expect(await cluster.keys('*')).toEqual([]);
  });

  test('accepts a cluster with only the permissions named in its remedy', async () => {
    const remedy = redisRemedy('NOPERM no permissions', 'redis.cluster') ?? '';
    const rights = remedy.split(' ').filter((word) => word.startsWith('+'));
    const user = ['--user', 'proxy', 'on', '>secret', '~hrp:*', '&hrp:*', '-@all', ...rights];
    const cluster = await startRedisCluster(3, user);
    onTestFinished(cluster.stop);
    const nodes = cluster.nodes.split(',').map((node) => `redis://proxy:secret@${node}`);
    expect(await probe({ cluster: nodes })).toMatch(/^(?:[a-z]+ )?\d+\.\d+\.\d+$/);
  });
});
