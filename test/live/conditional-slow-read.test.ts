// A conditional write whose read of the record is slow, while another instance acknowledges a write: it reads again.
import '../support/real-sockets.js';
import { expect, onTestFinished, test } from 'vitest';
import { type Asked, ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberIn, numbered, numberedBody } from '../support/demo-writes.js';
import { describeWithRedis } from '../support/redis-server.js';
import { startSharing } from '../support/sharing-proxies.js';
import { HANDLE, PATH } from '../support/upstream.js';
import { useRedis } from '../support/use-redis.js';

const demo = await startDemoServer();
const LOCK = `t:{${HANDLE.toUpperCase()}}`;

interface Situation {
  /** `upstream.writeTimeout` of the two instances. */
  timeouts?: [one: string, other: string];
  /** Step ahead of the Redis clock before the second write is granted the lock (ms). */
  stepMs?: number;
}

describeWithRedis('two conditional writes with one ETag through two instances', () => {
  const redis = useRedis();

  const start = (writeTimeout: string) =>
    startSharing({
      redisUrl: redis.url,
      upstreamUrl: demo.url,
      env: { REDIS_KEY_PREFIX: 't:', UPSTREAM_WRITE_TIMEOUT: writeTimeout },
    });

  test.each<[string, Situation]>([
    ['', {}],
    [' and the clock of Redis is set ahead by almost a second', { stepMs: 900 }],
    [' and upstream.writeTimeout of the other instance is longer', { timeouts: ['10s', '30s'] }],
  ])(
    'get 200 and 412 when the second has read the record before the first%s',
    async (_and, { timeouts = ['30s', '30s'], stepMs = 0 }) => {
      demo.put(HANDLE, numbered(1));
      onTestFinished(() => {
        demo.hold.sendHeld('GET');
      });
      const [one, other] = await Promise.all([start(timeouts[0]), start(timeouts[1])]);
      const etag = (await one.ask(PATH, { headers: WRITE_HEADERS })).headers.etag ?? '';
      const put = (url: string, number: number): Promise<Asked> => {
        const headers = { ...WRITE_HEADERS, 'If-Match': etag };
        return ask(url, PATH, { method: 'PUT', headers, body: numberedBody(number) });
      };
      demo.hold.holdReplies('GET');
      const second = put(other.url, 3);
      await expect.poll(() => demo.hold.size).toBe(1);
      demo.hold.holdNoMore('GET');
      expect((await put(one.url, 2)).status).toBe(200);
      await expect.poll(() => redis.client.exists(`${LOCK}:lock`)).toBe(0);
      // After a step, times of before it seem to be longer ago.
      const releasedAt = Number(await redis.client.get(`${LOCK}:held`));
      await redis.client.set(`${LOCK}:held`, String(releasedAt - stepMs), 'KEEPTTL');
      demo.hold.sendHeld('GET');
      expect((await second).status).toBe(412);
      expect(numberIn(await ask(demo.url, PATH))).toBe(2);
    },
  );
});
