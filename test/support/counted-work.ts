// Counts work: how often blocks of our source are run. V8 counts them exactly, so that the figure depends on no machine.
// Import it first, and in a test file with a process of its own: what is compiled before is not counted by block.
import { type Profiler, Session } from 'node:inspector';
import { onTestFinished, vi } from 'vitest';
import { TimeSlicer } from '../../src/time-slicer.js';

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** Since the last call. What is inside of a builtin (`indexOf`, a regular expression) counts as one. */
function takeBlocks(): number {
  let scripts: Profiler.ScriptCoverage[] = [];
  // In the same thread it calls back before it returns.
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

/** Of each, one after the other. Whatever else runs in src meanwhile is counted too: call it when nothing else does. */
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
  /** The most between two turns of the event loop; the milliseconds include those of the counting. */
  longestTurn: { blocks: number; ms: number };
}

/** To count takes as long. */
const IDLE_MS = 4;

/** The same for one, by turns of the event loop. */
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
    // The blocks of idle turns count with the next one.
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

/** What a step takes by the clock of `sliceBySteps` (ms): five hundred of them fill a slice. */
const STEP_MS = 0.01;

/** Until the test ends, slices have as many steps on every machine. */
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
