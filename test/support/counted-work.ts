// Counts work: how often blocks of our source are run. V8 counts exactly, so the figure does not depend on the machine.
// Import it first, in a test file with a separate process: V8 counts functions compiled earlier only as a whole.
import { type Profiler, Session } from 'node:inspector';
import { onTestFinished, vi } from 'vitest';
import { TimeSlicer } from '../../src/time-slicer.js';

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** Blocks since the last call. A builtin (`indexOf`, a regular expression) counts as one. */
function takeBlocks(): number {
  let scripts: Profiler.ScriptCoverage[] = [];
  // Within one thread the callback runs before `post` returns.
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error !== null) throw error;
    scripts = coverage.result;
  });
  return scripts
    .filter(({ url }) => url.includes('/src/') && !url.includes('node_modules'))
    .flatMap(({ functions }) => functions)
    .flatMap(({ ranges }) => ranges)
    .reduce((sum, { count }) => sum + count, 0);
}

/** Blocks of each work, run in sequence. Other work in src counts too: call it when nothing else runs. */
export async function countEach(works: readonly (() => Promise<void>)[]): Promise<number[]> {
  const counts: number[] = [];
  takeBlocks();
  for (const work of works) {
    await work();
    counts.push(takeBlocks());
  }
  return counts;
}

export interface CountedTurns {
  blocks: number;
  /** Maximum between two turns of the event loop; the milliseconds include the counting. */
  longestTurn: { blocks: number; ms: number };
}

/** Counting takes about this time. */
const IDLE_MS = 4;

/** Blocks of one work, in total and in its longest turn of the event loop. */
export async function countTurns(work: () => Promise<void>): Promise<CountedTurns> {
  const longestTurn = { blocks: 0, ms: 0 };
  let blocks = 0;
  let since = performance.now();
  const endTurn = (): void => {
    longestTurn.ms = Math.max(longestTurn.ms, performance.now() - since);
    const ofTurn = takeBlocks();
    longestTurn.blocks = Math.max(longestTurn.blocks, ofTurn);
    blocks += ofTurn;
    since = performance.now();
  };
  let isDone = false;
  const watch = (): void => {
    // Blocks of idle turns count with the next turn.
    if (performance.now() - since >= IDLE_MS) endTurn();
    if (!isDone) setImmediate(watch);
  };
  takeBlocks();
  setImmediate(watch);
  try {
    await work();
    endTurn();
    return { blocks, longestTurn };
  } finally {
    isDone = true;
  }
}

/** Duration of a step by the clock of `sliceBySteps` (ms): five hundred steps fill a slice. */
const STEP_MS = 0.01;

/** Until the test ends, slices have the same number of steps on every machine. */
export function sliceBySteps(): void {
  let time = 0;
  const monotonic = (): number => (time += STEP_MS);
  const slicer = new TimeSlicer({ monotonic, nextTurn: setImmediate });
  const run = TimeSlicer.prototype.run.bind(slicer);
  const spied = vi.spyOn(TimeSlicer.prototype, 'run').mockImplementation(run);
  onTestFinished(() => {
    spied.mockRestore();
  });
}
