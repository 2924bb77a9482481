// Conditional writes on two instances with a paused or frozen Redis: none is lost, and a write returns 503 if
// its lock is unavailable.
import '../support/real-sockets.js';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { mapLimited } from '../../src/v2/collection.js';
import { adminValue, textValue } from '../../src/dev-server/seed.js';
import { type Asked, ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberIn, numbered, numberedBody } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { startSharing } from '../support/sharing-proxies.js';
import { HANDLE, PATH } from '../support/upstream.js';

const demo = await startDemoServer();
const V2_PATH = `/api/v2/handles/${HANDLE}`;
const WRITES = 32;

interface Counter {
  path: string;
  bodyOf: (count: number) => string;
}

const RECORD: Counter = { path: PATH, bodyOf: numberedBody };
const V2: Counter = {
  path: V2_PATH,
  bodyOf: (count) => JSON.stringify([{ type: 'URL', parsed_data: `https://example.org/${count}` }]),
};

async function startOwnRedis(): Promise<RedisServer> {
  const redis = await startRedis();
  onTestFinished(() => {
    redis.thaw();
    return redis.stop();
  });
  return redis;
}

/** Starts two instances with the default `redis.commandTimeout`. */
const startTwo = (redis: RedisServer, env: Record<string, string> = {}, lockWaitMs = 60_000) => {
  const start = () =>
    startSharing({
      redisUrl: redis.url,
      upstreamUrl: demo.url,
      env: {
        REDIS_COMMAND_TIMEOUT: '50ms',
        ...env,
        ...fixed({ v2: { lockWaitMs: 60_000 }, redis: { lockWaitMs } }),
      },
    });
  return Promise.all([start(), start()]);
};

/** Pauses Redis for 120 ms twice a second. */
function pauseOften({ url }: RedisServer): void {
  const client = new Redis(url);
  const timer = setInterval(() => void client.call('CLIENT', 'PAUSE', '120', 'ALL'), 500);
  onTestFinished(() => {
    clearInterval(timer);
    client.disconnect();
  });
}

/** Repeats a conditional increment until it succeeds, and returns the number of tries. */
async function addOne(url: string, { path, bodyOf }: Counter): Promise<number> {
  for (let tries = 1; ; tries++) {
    const seen = await ask(url, path, { headers: WRITE_HEADERS });
    const headers = { ...WRITE_HEADERS, 'If-Match': seen.headers.etag ?? '' };
    const { status } = await ask(url, path, { method: 'PUT', headers, body: bodyOf(numberIn(seen) + 1) });
    if (status < 300) return tries;
    expect([412, 503]).toContain(status);
  }
}

describeWithRedis('two instances on one Redis', () => {
  test.each([
    ['record interface', RECORD],
    ['ePIC v2', V2],
  ])(
    `lose none of ${WRITES} conditional writes (%s) while Redis pauses for 120 ms twice a second`,
    { timeout: 300_000 },
    async (_interface, counter) => {
      demo.put(HANDLE, [textValue(1, 'URL', 'https://example.org/0'), adminValue()]);
      const redis = await startOwnRedis();
      const instances = await startTwo(redis);
      pauseOften(redis);
      const tries = await mapLimited(
        Array.from({ length: WRITES }, (_, at) => instances[at % 2]!.url),
        8,
        (url) => addOne(url, counter),
      );
      process.stdout.write(`${WRITES} writes, ${tries.reduce((sum, count) => sum + count, 0)} tries\n`);
      expect(numberIn(await ask(demo.url, PATH))).toBe(WRITES);
    },
  );

  test.each(['PUT', 'DELETE'])(
    'return 503 with Retry-After for a conditional %s, and forward nothing, while Redis does not respond',
    async (method) => {
      demo.put(HANDLE, numbered(1));
      const redis = await startOwnRedis();
      const [one] = await startTwo(redis, { DELETION_HANDLES: 'true' }, 200);
      const write = (path: string, body: string): Promise<Asked> =>
        ask(one.url, path, {
          method,
          headers: { ...WRITE_HEADERS, 'If-Match': '*' },
          ...(method === 'PUT' && { body }),
        });
      redis.freeze();
      for (const { path, bodyOf } of [RECORD, V2]) {
        const { status, headers, text } = await write(path, bodyOf(2));
        expect(status).toBe(503);
        expect(Number(headers['retry-after'])).toBeGreaterThan(0);
        expect(text).toContain('LOCK_UNAVAILABLE');
      }
      expect(numberIn(await ask(demo.url, PATH))).toBe(1);
      redis.thaw();
      await expect.poll(async () => (await write(PATH, numberedBody(2))).status).toBe(200);
    },
  );

  test.each([
    ['PUT', 'record interface', RECORD],
    ['DELETE', 'record interface', RECORD],
    ['PUT', 'ePIC v2', V2],
    ['DELETE', 'ePIC v2', V2],
  ])(
    'forward no %s over the %s after the instance was paused while holding the lock',
    async (method, _interface, counter) => {
      demo.put(HANDLE, numbered(1));
      const redis = await startOwnRedis();
      const env = { REDIS_KEY_PREFIX: 't:', DELETION_HANDLES: 'true', DELETION_VALUES: 'true' };
      const [one] = await startTwo(redis, env);
      const client = new Redis(redis.url);
      onTestFinished(() => {
        client.disconnect();
      });
      // The key shows an earlier lock by a different writer, so the record is read again under the lock.
      await client.set(`t:{${HANDLE.toUpperCase()}}:held`, 'held', 'PX', 60_000);
      demo.reset();
      const { monotonic } = systemClock;
      let stoodMs = 0;
      vi.spyOn(systemClock, 'monotonic').mockImplementation(
        () => monotonic() + (demo.askedFor(HANDLE) >= 2 ? (stoodMs += 6000) : 0),
      );
      const { status, headers, text } = await ask(one.url, counter.path, {
        method,
        headers: { ...WRITE_HEADERS, 'If-Match': '*' },
        ...(method === 'PUT' && { body: counter.bodyOf(2) }),
      });
      expect([status, headers['retry-after'], JSON.parse(text)]).toEqual([
        503,
        '1',
        expect.objectContaining({ code: 'LOCK_UNAVAILABLE' }),
      ]);
      expect(demo.askedFor(HANDLE)).toBe(2);
      expect(numberIn(await ask(demo.url, PATH))).toBe(1);
    },
  );

  test('need no lock, even while Redis does not respond, for conditions that the Handle server evaluates', async () => {
    const redis = await startOwnRedis();
    const [one] = await startTwo(redis, {}, 200);
    redis.freeze();
    const create = (path: string, body: string, condition: Record<string, string>): Promise<Asked> =>
      ask(one.url, path, { method: 'PUT', headers: { ...WRITE_HEADERS, ...condition }, body });
    const onlyNew = { 'If-None-Match': '*' };
    expect((await create(`${PATH}-a`, numberedBody(1), onlyNew)).status).toBe(201);
    expect((await create(`${V2_PATH}-b`, V2.bodyOf(1), onlyNew)).status).toBe(201);
    expect((await create(`${V2_PATH}-c`, V2.bodyOf(1), {})).status).toBe(201);
  });
});
