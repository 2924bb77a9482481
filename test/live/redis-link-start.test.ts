// A Redis that is there is found at once: ioredis asks it whether it is ready, and that comes before SUBSCRIBE.
import { expect, onTestFinished, test } from 'vitest';
import { openLinked } from '../support/instances.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';

const STARTS = 50;

/** What failed before the link was up. */
async function startLink(url: string): Promise<string[]> {
  const failed: string[] = [];
  const onError = (command: string): number => failed.push(command);
  const instance = await openLinked({ url, redis: { commandTimeoutMs: 10_000, onError } });
  await instance.close();
  return failed;
}

describeWithRedis('the link to a Redis that is there', () => {
  test(`is up without a single failure, ${STARTS} times`, async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const failures: string[] = [];
    for (let start = 0; start < STARTS; start++) failures.push(...(await startLink(redis.url)));
    expect(failures).toEqual([]);
  });
});
