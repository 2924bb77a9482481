// Overload: with more misses than the upstream and its queue can handle, hits continue, and excess misses get
// 503 with Retry-After.
// OVERLOAD_SECONDS=60 measures for a minute. The test prints its figures.
import '../support/real-sockets.js';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type Asked, ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy, startProgram } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';

const SECONDS = Number(process.env['OVERLOAD_SECONDS'] ?? '2');
const CAPACITY = 40;
const HITS_PER_SECOND = 1000;
const HITS = HITS_PER_SECOND * SECONDS;
const HIT = '/api/handles/21.T11998/page';
/** Many more clients than permits and queue places, so they overload the upstream even on a slow machine. */
const ASKERS = 120;
const ASKER_PAUSE_MS = 250;
const MIB = 1024 * 1024;

const demo = await startDemoServer({ capacityPerSecond: CAPACITY });

interface Hits {
  '2xx': number;
  non2xx: number;
  errors: number;
  requests: { average: number };
  latency: { p99: number };
}

/** Sends hits from a separate process over four connections, at a rate below the capacity of the machine. */
async function hit(proxy: BuiltProxy): Promise<Hits> {
  const args = ['-c', '4', '-R', String(HITS_PER_SECOND), '-a', String(HITS), '--json', '--no-progress'];
  const load = startProgram(['node_modules/autocannon/autocannon.js', ...args, `${proxy.url}${HIT}`], {});
  await load.exited;
  return JSON.parse(load.stdout()) as Hits;
}

/** Requests new handles until `isOver` returns true. */
async function miss(proxy: BuiltProxy, isOver: () => boolean): Promise<Asked[]> {
  const answers: Asked[] = [];
  let count = 0;
  const askOn = async (): Promise<void> => {
    while (!isOver()) {
      answers.push(await ask(proxy.url, `/api/handles/21.T11998/unknown-${count++}`));
      await pause(ASKER_PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: ASKERS }, askOn));
  return answers;
}

async function rssMiB(proxy: BuiltProxy): Promise<number> {
  const { text } = await ask(proxy.adminUrl, '/metrics');
  return Number(/^process_resident_memory_bytes(?:\{[^}]*\})? (\S+)/m.exec(text)?.[1]) / MIB;
}

describe('overloaded proxy', () => {
  test(
    'serves hits as usual, and rejects misses beyond the queue with 503 and Retry-After',
    { timeout: 60_000 + SECONDS * 3000 },
    async () => {
      const proxy = await startBuiltProxy({
        UPSTREAM_URL: demo.url,
        UPSTREAM_CONCURRENCY: '8',
        ...fixed({ upstream: { queue: 20, queueTimeoutMs: 500 } }),
        LOG_LEVEL: 'info',
      });
      expect((await ask(proxy.url, HIT)).status).toBe(200);
      const alone = await hit(proxy);
      const before = await rssMiB(proxy);
      demo.reset();
      let isOver = false;
      const misses = miss(proxy, () => isOver);
      const under = await hit(proxy);
      isOver = true;
      const answers = await misses;
      const after = await rssMiB(proxy);

      const refused = answers.filter(({ status }) => status === 503);
      const share = Math.round((100 * under.requests.average) / alone.requests.average);
      process.stdout.write(
        `${SECONDS} s: hits ${alone.requests.average}/s alone (p99 ${alone.latency.p99} ms), ` +
          `${under.requests.average}/s (p99 ${under.latency.p99} ms) under ` +
          `${answers.length} misses (${share} %); ${refused.length} of them 503, ${demo.asked} asked; ` +
          `memory ${before.toFixed()} MiB, then ${after.toFixed()} MiB\n`,
      );
      for (const hits of [alone, under]) {
        expect([hits['2xx'], hits.non2xx, hits.errors]).toEqual([HITS, 0, 0]);
      }
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404, 503]));
      for (const { headers } of refused) expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      expect(demo.asked, 'nobody who was refused').toBe(answers.length - refused.length);
      expect(after - before).toBeLessThan(256);
    },
  );
});
