// Redis is optional: readers do not notice its failures. Measures latencies, so it runs alone.
import { expect, onTestFinished, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import type { Proxy } from '../support/proxy.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';
import { startStallClock } from '../support/stall-clock.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/page';
const PATH = `/api/handles/${HANDLE}`;
/** Maximum latency of a read while Redis fails, and the latency above which a read counts as slow. */
const MOST_MS = 100;
const NOTICEABLE_MS = 40;
const MOST_READERS = 20;

const recordOf = (path: string): unknown[] => [
  { index: 1, type: 'URL', data: { format: 'string', value: `https://example.org/${path}` } },
];

interface Read {
  status: number;
  /** Latency excluding the time for which the machine stalled the process. */
  ms: number;
}

/** Reads continuously, alternating between a record in memory and a new record. */
function keepReading(proxy: Proxy): { reads: Read[]; stop: () => Promise<void> } {
  const reads: Read[] = [];
  const stalledMs = startStallClock();
  const clock = (): number => performance.now() - stalledMs();
  let isReading = true;
  const readOn = async (name: string): Promise<void> => {
    for (let count = 0; isReading; count++) {
      const handle = count % 2 === 0 ? HANDLE : `21.T11998/cold-${name}-${count}`;
      if (handle !== HANDLE) demo.put(handle, recordOf(handle));
      const startedAt = clock();
      const { status } = await proxy.ask(`/api/handles/${handle}`);
      reads.push({ status, ms: clock() - startedAt });
    }
  };
  const readers = Promise.all(['a', 'b', 'c'].map(readOn));
  const stop = async (): Promise<void> => {
    isReading = false;
    await readers;
  };
  onTestFinished(stop);
  return { reads, stop };
}

interface Loss {
  away: (redis: RedisServer) => unknown;
  back: (redis: RedisServer) => unknown;
}

const lose: Record<string, Loss> = {
  stopped: { away: (redis) => redis.stop(), back: (redis) => redis.restart() },
  frozen: {
    away: (redis) => {
      redis.freeze();
    },
    back: (redis) => {
      redis.thaw();
    },
  },
};
const kinds = Object.keys(lose);

describeWithRedis('unavailable Redis', () => {
  test.each(kinds)('neither delays nor fails a read while it is %s, or when it returns', async (kind) => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { away, back } = lose[kind]!;
    demo.put(HANDLE, recordOf('first'));
    const env = { REDIS_COMMAND_TIMEOUT: '50ms' };
    const proxy = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env });
    await proxy.ask(PATH);
    const { reads, stop } = keepReading(proxy);
    const more = async (): Promise<void> => {
      const enough = reads.length + 200;
      // The read rate depends on the machine, so the test checks only the slow reads below.
      await expect.poll(() => reads.length).toBeGreaterThan(enough);
    };
    await more();
    await away(redis);
    await redisIs(proxy, 0);
    await more();
    await back(redis);
    await redisIs(proxy, 1);
    await more();
    await stop();
    expect(reads.filter(({ status }) => status !== 200)).toEqual([]);
    const slowest = Math.max(...reads.map(({ ms }) => ms));
    expect(slowest, `the slowest of ${reads.length} reads`).toBeLessThan(MOST_MS);
    expect(reads.filter(({ ms }) => ms > NOTICEABLE_MS).length).toBeLessThan(MOST_READERS);
  });
});
