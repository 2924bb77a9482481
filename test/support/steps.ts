// Runs sliced work to completion, and counts its steps.
import type { Steps } from '../../src/time-slicer.js';

export function countSteps<T>(work: Steps<T>): { steps: number; value: T } {
  for (let steps = 0; ; steps++) {
    const { done, value } = work.next();
    if (done === true) return { steps, value };
  }
}

export const finish = <T>(work: Steps<T>): T => countSteps(work).value;
