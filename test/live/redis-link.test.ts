// The time limit of a Redis command is the whole wait, also for a command that stands behind a stuck one.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { RedisLink } from '../../src/cache/redis-link.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';
import { startStallClock } from '../support/stall-clock.js';

const LIMIT_MS = 300;

describeWithRedis('the link to a frozen Redis', () => {
  test('gives up each of several commands after redis.commandTimeout', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const failed: string[] = [];
    const link = await new Promise<RedisLink>((resolve) => {
      const opened: RedisLink = new RedisLink(
        {
          url: redis.url,
          keyPrefix: 'test:',
          commandTimeoutMs: LIMIT_MS,
          onState: () => {
            resolve(opened);
          },
          onError: (command) => failed.push(command),
        },
        () => undefined,
      );
    });
    onTestFinished(() => link.close());
    redis.freeze();
    const stalledMs = startStallClock();
    const startedAt = performance.now();
    const first = link.run('first', (client) => client.get('a'));
    await nextTurn(); // the first is on its way now, and ioredis keeps the second back until it is done
    const second = link.run('second', (client) => client.get('b'));
    expect(await Promise.all([first, second])).toEqual([undefined, undefined]);
    expect(performance.now() - startedAt - stalledMs()).toBeLessThan(1.5 * LIMIT_MS);
    expect(failed).toEqual(expect.arrayContaining(['first', 'second']));
    expect(link.isUp()).toBe(false);
  });
});

describeWithRedis('the link to a Redis that is slow', () => {
  test('proves that messages are heard while something else takes its time', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    let proofs = 0;
    const link = new RedisLink(
      {
        url: redis.url,
        keyPrefix: 'test:',
        commandTimeoutMs: 30_000,
        onProof: () => proofs++,
        whileUp: () => new Promise(() => undefined),
      },
      () => undefined,
    );
    onTestFinished(() => link.close());
    await expect.poll(() => proofs).toBeGreaterThan(3);
  });
});
