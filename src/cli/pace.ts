// At most so many a second.
import { setTimeout as sleep } from 'node:timers/promises';

/** Settles when the next may go, or when all are to stop. A rate of 0 is no limit. */
export function createPace(rate: number, signal: AbortSignal): () => Promise<void> {
  let nextAt = 0;
  return async function pace() {
    if (rate === 0) return;
    const at = Math.max(performance.now(), nextAt);
    nextAt = at + 1000 / rate;
    await sleep(at - performance.now(), undefined, { signal }).catch(() => undefined);
  };
}
