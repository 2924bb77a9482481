// Checks that memory stays flat; `npm run soak` sets SOAK_SECONDS=300 for a long run.
import '../support/real-sockets.js';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';
import { NAMES, startLoad } from './load.js';

const SECONDS = Number(process.env['SOAK_SECONDS'] ?? '9');
const SAMPLES_PER_THIRD = 4;
const MIB = 1024 * 1024;
/** Number of requests that fill every bounded structure. */
const FILLING_REQUESTS = 5000;
/** Allowed growth from the second to the last third, for late compilation and lists that still fill up. */
const MARGIN_MIB = 3;

/** Preloaded into the program: on a signal, collects garbage and prints the heap size. */
const PRELOADED = `
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  process.on('SIGALRM', () => {
    gc();
    gc();
    const { heapUsed, external, rss } = process.memoryUsage();
    process.stderr.write('LEFT ' + JSON.stringify({ pid: process.pid, used: heapUsed + external, rss }) + '\\n');
  });
  process.stderr.write('PID ' + process.pid + '\\n');
`;

interface Left {
  used: number;
  rss: number;
}

const median = (numbers: number[]): number =>
  numbers.sort((one, other) => one - other)[numbers.length >> 1] ?? 0;

describeWithRedis('memory in a long run', () => {
  test(
    'does not grow between the second and the last third',
    { timeout: 60_000 + 2000 * SECONDS },
    async () => {
      const demo = await startDemoServer();
      for (const name of NAMES) demo.put(name, [textValue(1, 'URL', `https://example.org/${name}`)]);
      const redis = await startRedis();
      onTestFinished(() => redis.stop());
      const proxy = await startBuiltProxy({
        UPSTREAM_URL: demo.url,
        REDIS_URL: redis.url,
        LOG_LEVEL: 'info',
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PRELOADED)}`,
        CACHE_MAX_BYTES: '256KiB',
        ...fixed({
          cache: { notFound: { maxEntries: 100 } },
          http: { responseCache: { maxBytes: 256 * 1024 } },
        }),
      });
      const lefts = (): Left[] =>
        [...proxy.output().matchAll(/^LEFT (.*)$/gm)].map(([, json]) => JSON.parse(json!) as Left);
      const pid = Number(/^PID (\d+)$/m.exec(proxy.output())?.[1]);
      const load = startLoad(proxy.url);
      const requests = (): number => Object.values(load.counts).reduce((sum, count) => sum + count, 0);
      await expect.poll(requests, { timeout: 60_000 }).toBeGreaterThan(FILLING_REQUESTS);
      for (let count = 0; count < 3 * SAMPLES_PER_THIRD; count++) {
        await pause((1000 * SECONDS) / (3 * SAMPLES_PER_THIRD));
        process.kill(pid, 'SIGALRM');
        await expect.poll(() => lefts().length).toBe(count + 1);
      }
      await load.stop();
      const thirds = [0, 1, 2].map((at) => {
        const some = lefts().slice(at * SAMPLES_PER_THIRD, (at + 1) * SAMPLES_PER_THIRD);
        return {
          used: median(some.map(({ used }) => used)) / MIB,
          rss: median(some.map(({ rss }) => rss)) / MIB,
        };
      });
      process.stdout.write(
        `${SECONDS} s, ${requests()} requests; MiB in use after a collection, and RSS, by thirds: ` +
          `${thirds.map(({ used, rss }) => `${used.toFixed(1)} (${rss.toFixed()})`).join(', ')}\n`,
      );
      expect(thirds[2]!.used - thirds[1]!.used).toBeLessThan(MARGIN_MIB);
    },
  );
});
