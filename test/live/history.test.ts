// Linearizability of twelve clients on three instances while instances and Redis are paused repeatedly.
// HISTORY_SECONDS=300 runs longer, HISTORY_SEED sets the random seed.
import '../support/real-sockets.js';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createRandom } from '../chaos/random.js';
import { startConnectedProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { numbered } from '../support/demo-writes.js';
import {
  HistoryRecorder,
  INITIAL,
  type Load,
  keepStopping,
  stoppableInstance,
  stoppableRedis,
} from '../support/history-load.js';
import { type Verdict, checkHistory } from '../support/linearizability.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';
import { startSlowLine } from '../support/slow-line.js';

const { HISTORY_SECONDS: seconds = '8', HISTORY_SEED: seed = '32' } = process.env;
const CLIENTS = Array.from({ length: 12 }, (_, at) => `client ${at}`);
const HANDLES = Array.from({ length: 6 }, (_, at) => `21.T11998/history-${at}`);
/** Upstream response delay, so that loads and writes are in flight during a pause. */
const UPSTREAM_MS = 5;
const LATE_MS = 10;
const MIN_ACKNOWLEDGED = 10;

const demo = await startDemoServer();

function report({ counts }: HistoryRecorder, stops: number[], { faults, newThenOld }: Verdict): void {
  const { reads, unconditional, conditional, refused, unknown, markedStale, failed } = counts;
  const [ofInstances, ofRedis] = stops;
  const faultsOf = (wanted: string): number => faults.filter(({ kind }) => kind === wanted).length;
  const lines = [
    `history: ${seconds} s, seed ${seed}, ${ofInstances} stops of instances, ${ofRedis} of Redis`,
    `  ${reads} reads; ${markedStale} more marked as stale, ${failed} failed`,
    `  ${unconditional + conditional} writes acknowledged (${conditional} conditional), ${refused} refused, ${unknown} of unknown outcome`,
    `  ${faultsOf('stale read')} stale reads, ${faultsOf('lost update')} lost updates`,
    `  ${newThenOld.count} times an old version after a new one (${newThenOld.ofOneClient} times to one client), ${newThenOld.longestMs.toFixed(1)} ms at most`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}

describeWithRedis('three instances on one Redis', () => {
  test(
    'serve no older record after an acknowledgement, and lose no conditional write, during repeated pauses',
    { timeout: (Number(seconds) + 600) * 1000 },
    async () => {
      const redis = await startRedis();
      onTestFinished(() => redis.stop());
      for (const handle of HANDLES) demo.put(handle, numbered(Number(INITIAL)));
      const env = {
        UPSTREAM_URL: demo.url,
        REDIS_COMMAND_TIMEOUT: '50ms',
        // These settings disable the exceptions for a disconnected Redis, which a stall would trigger.
        REDIS_DISCONNECTED_MAX_AGE: '0s',
        REDIS_DISCONNECTED_WRITES: 'reject',
      };
      // One instance receives messages later than the others.
      const { port } = await startSlowLine(redis.port, LATE_MS);
      const urls = [redis.url, redis.url, `redis://127.0.0.1:${port}`];
      const instances = await Promise.all(urls.map((url) => startConnectedProxy({ ...env, REDIS_URL: url })));
      demo.delay(UPSTREAM_MS);
      let isOver = false;
      const random = createRandom(Number(seed));
      const load: Load = { handles: HANDLES, instances, random, isOver: () => isOver };
      const recorder = new HistoryRecorder(load);
      const clients = CLIENTS.map((name) => recorder.client(name));
      const stopping = [
        keepStopping(load, () => stoppableInstance(random.pick(instances))),
        keepStopping(load, () => stoppableRedis(redis)),
      ];
      await pause(Number(seconds) * 1000);
      const { counts } = recorder;
      await expect.poll(() => counts.conditional).toBeGreaterThan(MIN_ACKNOWLEDGED);
      await expect.poll(() => counts.unconditional).toBeGreaterThan(MIN_ACKNOWLEDGED);
      isOver = true;
      const stops = await Promise.all(stopping);
      await Promise.all(clients);
      for (const handle of HANDLES)
        for (const at of instances.keys()) await recorder.read('last client', handle, undefined, at);
      const verdict = checkHistory(recorder.operations, INITIAL);
      report(recorder, stops, verdict);
      expect(Math.min(...stops)).toBeGreaterThan(0);
      expect(verdict.faults).toEqual([]);
    },
  );
});
