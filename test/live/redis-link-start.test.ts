// The first connection to Redis: it succeeds immediately, with the ready check before SUBSCRIBE.
import { expect, onTestFinished, test } from 'vitest';
import { timeoutError } from '../../src/cache/redis/errors.js';
import { openLinked } from '../support/instances.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';

const STARTS = 50;

/** Returns the errors before the link was up, except timeouts, which a busy machine causes. */
async function startLink(url: string): Promise<string[]> {
  const reasons: string[] = [];
  const onTrouble = (reason: string): number => reasons.push(reason);
  const instance = await openLinked({ url, redis: { commandTimeoutMs: 10_000, onTrouble } });
  await instance.close();
  return reasons.filter((reason) => reason !== timeoutError().message);
}

describeWithRedis('link to a running Redis', () => {
  test(`connects without an error ${STARTS} times`, async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const failures: string[] = [];
    for (let start = 0; start < STARTS; start++) failures.push(...(await startLink(redis.url)));
    expect(failures).toEqual([]);
  });
});
