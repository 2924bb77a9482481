// Lists the workloads in run order; the workloads of a stage share servers.
import type { WorkloadName } from './plan.js';
import type { Result } from './results.js';
import { first } from './workloads/first.js';
import { herd } from './workloads/herd.js';
import { hostile } from './workloads/hostile.js';
import { memory } from './workloads/memory.js';
import { miss } from './workloads/miss.js';
import { mixed, servers } from './workloads/mixed.js';
import { native } from './workloads/native.js';
import { overload } from './workloads/overload.js';
import { redirectCold, redirectTail } from './workloads/redirect-once.js';
import { revalidate } from './workloads/revalidate.js';
import { crawler, tail } from './workloads/tail.js';
import { hot, redirect, startFilledPeers, zipf } from './workloads/throughput.js';
import type { Bench, Workload } from './workloads/workload.js';
import { write } from './workloads/write.js';

export interface Stage {
  names: readonly WorkloadName[];
  /** Runs the selected workloads of this stage. */
  run: (bench: Bench, wanted: readonly WorkloadName[]) => Promise<Result[]>;
}

const alone = (workload: WorkloadName, run: Workload): Stage => ({
  names: [workload],
  run: async (bench) => [{ workload, ...(await run(bench)) }],
});

export const STAGES: readonly Stage[] = [
  alone('hot', hot),
  alone('revalidate', revalidate),
  {
    names: ['zipf', 'redirect'],
    run: async (bench, wanted) => {
      const filled = await startFilledPeers(bench);
      const results: Result[] = [];
      if (wanted.includes('zipf')) results.push({ workload: 'zipf', ...(await zipf(bench, filled)) });
      if (wanted.includes('redirect')) {
        results.push({ workload: 'redirect', ...(await redirect(bench, filled)) });
      }
      return results;
    },
  },
  alone('redirect-tail', redirectTail),
  alone('redirect-cold', redirectCold),
  alone('tail', tail),
  alone('crawler', crawler),
  alone('mixed', mixed),
  alone('servers', servers),
  alone('herd', herd),
  alone('miss', miss),
  alone('first', first),
  alone('write', write),
  alone('overload', overload),
  alone('hostile', hostile),
  alone('native', native),
  alone('memory', memory),
];
