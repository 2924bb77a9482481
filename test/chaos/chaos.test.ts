// Runs a short chaos test for every change; `npm run chaos` runs a long test.
import '../support/real-sockets.js';
import { expect, test } from 'vitest';
import { describeWithRedis } from '../support/redis-server.js';
import { runChaos } from './run.js';

const { CHAOS_SECONDS = '15', CHAOS_SEED = '6', CHAOS_INSTANCES = '2', CHAOS_STRICT } = process.env;
const seconds = Number(CHAOS_SECONDS);

describeWithRedis('proxies during chaos (upstream, Redis and process faults)', () => {
  test(
    'send no wrong response, serve every cached record, and publish every acknowledged write or a gap',
    { timeout: (seconds + 600) * 1000 },
    async () => {
      const figures = await runChaos({
        seconds,
        seed: Number(CHAOS_SEED),
        instances: Number(CHAOS_INSTANCES),
        isStrict: CHAOS_STRICT !== undefined,
      });
      expect(figures.wrong).toEqual([]);
      expect(figures.failedOfKept).toBe(0);
      expect(figures.answers).toBeGreaterThan(100);
      expect(figures.stale).toBeGreaterThan(0);
      expect(figures.equalAudits).toBeGreaterThan(0);
    },
  );
});
