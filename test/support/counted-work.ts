// Measures work as the number of executed blocks of our source, which V8 counts exactly on every machine.
// Import this file first, in a test file with a separate process: V8 does not count blocks in functions
// compiled earlier.
import { type Profiler, Session } from 'node:inspector';
import type { Steps } from '../../src/time-slicer.js';

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** Whether to count the blocks of the script at this URL. */
type IsCounted = (url: string) => boolean;

const isOurs: IsCounted = (url) => url.includes('/src/') && !url.includes('node_modules');

/** Counts the validation of bodies too. */
export const isOursOrValidation: IsCounted = (url) => isOurs(url) || url.includes('/node_modules/zod/');

/**
 * Returns the number of blocks executed since the last call. A builtin (`indexOf`, a regular expression) counts
 * as one.
 */
function takeBlocks(isCounted = isOurs): number {
  let scripts: Profiler.ScriptCoverage[] = [];
  // The callback runs before `post` returns, because the session belongs to this thread.
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error !== null) throw error;
    scripts = coverage.result;
  });
  return scripts
    .filter(({ url }) => isCounted(url))
    .flatMap(({ functions }) => functions)
    .flatMap(({ ranges }) => ranges)
    .reduce((sum, { count }) => sum + count, 0);
}

/**
 * Runs tasks in sequence and counts the blocks of each. Nothing else may run, because other work in src
 * counts too.
 */
export async function countEach(
  works: readonly (() => Promise<void>)[],
  isCounted?: IsCounted,
): Promise<number[]> {
  const counts: number[] = [];
  takeBlocks();
  for (const work of works) {
    await work();
    counts.push(takeBlocks(isCounted));
  }
  return counts;
}

/** Runs steps to their end, and returns the blocks of the longest. */
export function countLongestStep(steps: Steps<unknown>): number {
  let longest = 0;
  takeBlocks();
  for (let isDone = false; !isDone;) {
    isDone = steps.next().done === true;
    longest = Math.max(longest, takeBlocks());
  }
  return longest;
}

export interface CountedTurns {
  blocks: number;
  /** The most expensive event-loop turn; the milliseconds include the counting. */
  longestTurn: { blocks: number; ms: number };
}

/** Minimum time between counts, because counting takes about this long. */
const IDLE_MS = 4;

/** Counts a task's blocks, in total and in its longest event-loop turn. */
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
    // Blocks of short turns count towards the next turn.
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
