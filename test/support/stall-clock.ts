// Measures how long this process stalled, so that a busy machine does not count as a slow program.
import { onTestFinished } from 'vitest';

const TICK_MS = 2;

/** A clock (ms) that runs only while the event loop is stalled. */
export function startStallClock(): () => number {
  let stalled = 0;
  let tickedAt = performance.now();
  const overdue = (): number => Math.max(0, performance.now() - tickedAt - TICK_MS);
  const ticking = setInterval(() => {
    stalled += overdue();
    tickedAt = performance.now();
  }, TICK_MS);
  onTestFinished(() => {
    clearInterval(ticking);
  });
  return () => stalled + overdue();
}
