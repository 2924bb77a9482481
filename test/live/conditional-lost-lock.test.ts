// Redis loses the lock that a conditional write waits for: the write reads the record again, and is not lost.
import '../support/real-sockets.js';

import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { type Asked, ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberIn, numbered, numberedBody } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { startSharing } from '../support/sharing-proxies.js';
import { HANDLE, PATH } from '../support/upstream.js';
import { newFolder } from '../support/folder.js';

const demo = await startDemoServer();
const PATIENT = { timeout: 60_000 };

/** A Redis that restarts from its last dump, if there is one. */
async function startDumpingRedis(): Promise<RedisServer & { client: Redis }> {
  const redis = await startRedis(['--dir', newFolder()]);
  const client = new Redis(redis.url);
  client.on('error', () => undefined);
  onTestFinished(async () => {
    client.disconnect();
    await redis.stop();
  });
  return { ...redis, client };
}

describeWithRedis('two conditional writes with one ETag through two instances', () => {
  test.each([
    ['is flushed', false, ({ client }: { client: Redis }) => client.flushall()],
    ['restarts without data', false, ({ restart }: RedisServer) => restart()],
    ['restarts from a dump in which the lock is free', true, ({ restart }: RedisServer) => restart()],
  ])(
    'get 200 and 412 when Redis %s while one waits for the other',
    { timeout: 240_000 },
    async (_how, isDumped, lose) => {
      demo.put(HANDLE, numbered(1));
      onTestFinished(() => {
        demo.hold.sendHeld('GET');
        demo.hold.sendHeld('PUT');
      });
      const redis = await startDumpingRedis();
      const { client } = redis;
      const env = {
        REDIS_KEY_PREFIX: 't:',
        ...fixed({ v2: { lockWaitMs: 60_000 }, redis: { lockWaitMs: 60_000 } }),
      };
      const start = () => startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env });
      const [one, other] = await Promise.all([start(), start()]);
      const put = (url: string, tag: string, number: number): Promise<Asked> =>
        ask(url, PATH, {
          method: 'PUT',
          headers: { ...WRITE_HEADERS, 'If-Match': tag },
          body: numberedBody(number),
        });
      const lock = `t:{${HANDLE.toUpperCase()}}`;
      expect((await put(one.url, '*', 2)).status).toBe(200);
      await expect.poll(() => client.get(`${lock}:held`), PATIENT).toMatch(/^\d+$/);
      if (isDumped) await client.save();
      const tag = (await ask(one.url, PATH, { headers: WRITE_HEADERS })).headers.etag ?? '';
      // Both read the record before either is sent.
      demo.hold.holdReplies('GET');
      const writes = [put(one.url, tag, 3), put(other.url, tag, 4)];
      await expect.poll(() => demo.hold.size, PATIENT).toBe(2);
      demo.hold.holdReplies('PUT');
      demo.hold.sendHeld('GET');
      await expect.poll(() => demo.hold.size, PATIENT).toBe(1);
      await expect.poll(() => client.exists(`${lock}:wanted`), PATIENT).toBe(1);
      await lose(redis);
      expect((await Promise.race(writes)).status).toBe(412);
      demo.hold.sendHeld('PUT');
      const statuses = (await Promise.all(writes)).map(({ status }) => status);
      expect(numberIn(await ask(demo.url, PATH))).toBe(3 + statuses.indexOf(200));
      expect(statuses.sort()).toEqual([200, 412]);
    },
  );
});
