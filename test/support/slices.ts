// A clock of the time slicer that counts steps.
import { onTestFinished, vi } from 'vitest';
import { MAX_SLICE_MS, TimeSlicer } from '../../src/time-slicer.js';

/** Duration of a step (ms) on the clock of `sliceBySteps`: 500 steps fill a slice. */
const STEP_MS = 0.01;

/** Steps that fill a slice. */
export const STEPS_PER_SLICE = MAX_SLICE_MS / STEP_MS;

/**
 * Gives slices the same number of steps on every machine, until the test ends. Returns a function that returns
 * the number of steps so far.
 */
export function sliceBySteps(): () => number {
  let time = 0;
  const monotonic = (): number => (time += STEP_MS);
  const slicer = new TimeSlicer({ monotonic, nextTurn: setImmediate });
  const run = TimeSlicer.prototype.run.bind(slicer);
  const spied = vi.spyOn(TimeSlicer.prototype, 'run').mockImplementation(run);
  onTestFinished(() => {
    spied.mockRestore();
  });
  return () => Math.round(time / STEP_MS);
}
