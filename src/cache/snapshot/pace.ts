// Background work in slices of at most half a millisecond, with time for requests between them.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../clock.js';

/** A million records take 6,000 slices: about 8 s. */
const SLICE_EVERY_MS = 1.25;

/**
 * To be awaited after each slice. The work keeps to a schedule: after a late timer the next slices only let pending
 * requests run before them.
 */
export function createPace({ monotonic, after }: Pick<Clock, 'monotonic' | 'after'>): () => Promise<void> {
  let dueAt = monotonic();
  return async function pace() {
    dueAt += SLICE_EVERY_MS;
    const restMs = dueAt - monotonic();
    if (restMs > 0) await new Promise<void>((resolve) => void after(restMs, resolve));
    else await nextTurn();
  };
}
