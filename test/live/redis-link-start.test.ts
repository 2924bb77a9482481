// A Redis that is there is found at once: ioredis asks it whether it is ready, and that comes before SUBSCRIBE.
import { expect, onTestFinished, test } from 'vitest';
import { RedisLink } from '../../src/cache/redis-link.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';

const STARTS = 200;

/** What failed before the link was up. */
async function startLink(url: string): Promise<string[]> {
  const failed: string[] = [];
  const place = { url, keyPrefix: 'test:', commandTimeoutMs: 10_000 };
  const link = await new Promise<RedisLink>((resolve) => {
    const onState = (): void => {
      resolve(opened);
    };
    const onError = (command: string): number => failed.push(command);
    const opened: RedisLink = new RedisLink({ ...place, onState, onError }, () => undefined);
  });
  await link.close();
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
