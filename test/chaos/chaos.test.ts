// Runs a short chaos test for every change; `npm run chaos` runs a long test.
import '../support/real-sockets.js';
import { expect, test } from 'vitest';
import { describeWithRedis } from '../support/redis-server.js';
import { runChaos } from './run.js';

const { CHAOS_SECONDS: seconds = '15', CHAOS_SEED: seed = '6' } = process.env;

describeWithRedis('proxies during chaos (upstream, Redis and process faults)', () => {
  test(
    'send no wrong response, and serve every cached record',
    { timeout: (Number(seconds) + 600) * 1000 },
    async () => {
      const figures = await runChaos({ seconds: Number(seconds), seed: Number(seed) });
      expect(figures.wrong).toEqual([]);
      expect(figures.failedOfKept).toBe(0);
      expect(figures.answers).toBeGreaterThan(100);
      expect(figures.stale).toBeGreaterThan(0);
      expect(figures.equalAudits).toBeGreaterThan(0);
    },
  );
});
