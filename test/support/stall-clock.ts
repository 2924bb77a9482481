// Measures how long this process stalled, so that tests can exclude delays caused by a busy machine.
import { onTestFinished } from 'vitest';

const TICK_MS = 2;

/** Starts a clock (ms) that advances only while the event loop is stalled. */
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
