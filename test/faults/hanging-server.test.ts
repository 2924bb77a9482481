// One of two Handle servers hangs: misses at the other server succeed. The test prints their latencies with
// and without the hanging server. HANGING_MISSES=20000 measures for longer.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { get } from '../bench/drive/callers.js';
import { quantile } from '../bench/statistics.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';

const MISSES = Number(process.env['HANGING_MISSES'] ?? '500');
const ROUNDS = 5;
const CALLERS = 8;
/** Number of unmeasured misses during which the clients of the hanging server connect. */
const UNMEASURED = 100;
const CALLERS_OF_HANGING = 128;
/** Pause of a client after its response. Without the pause, rejected requests would dominate the load. */
const PAUSE_MS = 250;

const hanging = await startDemoServer({ prefixes: ['21.T1'], seed: {} });

/** The Handle server that works: it returns a record for every handle. */
const working = createServer((req, res) => {
  const handle = decodeURIComponent((req.url ?? '').slice('/api/handles/'.length));
  const value = {
    index: 1,
    type: 'URL',
    data: { format: 'string', value: 'https://example.org/' },
    ttl: 86400,
  };
  res.setHeader('Content-Type', 'application/json;charset=utf-8');
  res.end(JSON.stringify({ responseCode: 1, handle, values: [value] }));
}).listen(0, '127.0.0.1');
await once(working, 'listening');
afterAll(() => {
  working.closeAllConnections();
  working.close();
});

let asked = 0;

/** Requests uncached handles from the working server. Returns the latencies in ms and the statuses. */
async function miss(url: string, count: number): Promise<{ latencies: number[]; statuses: number[] }> {
  const latencies: number[] = [];
  const statuses: number[] = [];
  let left = count;
  const askOn = async (): Promise<void> => {
    while (left-- > 0) {
      const startedAt = performance.now();
      const { status } = await get(`${url}/api/handles/21.T2/${asked++}`);
      latencies.push(performance.now() - startedAt);
      statuses.push(status);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, askOn));
  return { latencies, statuses };
}

/** Requests handles of the hanging server until `end` is called, which returns the response statuses. */
async function askHanging(url: string): Promise<{ end: () => Promise<number[]> }> {
  hanging.hold.holdReplies('GET');
  let isOver = false;
  const askOn = async (): Promise<number[]> => {
    const statuses: number[] = [];
    while (!isOver) {
      statuses.push((await get(`${url}/api/handles/21.T1/${asked++}`)).status);
      await pause(PAUSE_MS);
    }
    return statuses;
  };
  const before = hanging.asked;
  const callers = Array.from({ length: CALLERS_OF_HANGING }, askOn);
  await expect.poll(() => hanging.asked).toBeGreaterThan(before);
  return {
    async end() {
      isOver = true;
      hanging.hold.sendHeld('GET');
      return (await Promise.all(callers)).flat();
    },
  };
}

describe('hanging Handle server', () => {
  test(
    'lets all misses at a different Handle server succeed',
    { timeout: 120_000 + MISSES * 20 },
    async () => {
      const { port } = working.address() as AddressInfo;
      const { url } = await startBuiltProxy({
        UPSTREAMS: JSON.stringify([
          { prefixes: '21.T1', url: hanging.url },
          { prefixes: '21.T2', url: `http://127.0.0.1:${port}` },
        ]),
      });
      await miss(url, MISSES);
      const figures: Record<'alone' | 'beside', number[]> = { alone: [], beside: [] };
      for (let round = 0; round < ROUNDS; round++) {
        await miss(url, UNMEASURED);
        const alone = await miss(url, MISSES / ROUNDS);
        const other = await askHanging(url);
        await miss(url, UNMEASURED);
        const beside = await miss(url, MISSES / ROUNDS);
        const refused = await other.end();
        for (const { statuses } of [alone, beside]) expect(new Set(statuses)).toEqual(new Set([200]));
        expect(refused.filter((status) => ![404, 502, 503, 504].includes(status))).toEqual([]);
        figures.alone.push(...alone.latencies);
        figures.beside.push(...beside.latencies);
      }
      const shown = (latencies: number[]): string =>
        [0.5, 0.99].map((share) => `p${100 * share} ${quantile(latencies, share).toFixed(2)} ms`).join(', ');
      process.stdout.write(
        `${ROUNDS} × ${MISSES / ROUNDS} misses of ${CALLERS} callers: ${shown(figures.alone)} alone; ` +
          `${shown(figures.beside)} beside ${CALLERS_OF_HANGING} callers of a server that hangs\n`,
      );
    },
  );
});
