// The pauses of a mirror: after failures of the server, and by its schedule.
import type { Clock } from '../../cache/clock.js';

/** Returns the pause after a number of consecutive failures (ms). */
export const pauseMsAfter = (failures: number): number => Math.min(1000 * 2 ** (failures - 1), 60_000);

export function createPause({ monotonic, after }: Pick<Clock, 'monotonic' | 'after'>) {
  const cancels = new Set<() => void>();
  let isClosed = false;
  let failures = 0;
  let until = -Infinity;
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const cancel = after(ms, () => {
        cancels.delete(cancel);
        resolve();
      });
      cancels.add(cancel);
    });
  return {
    sleep,
    isClosed: () => isClosed,
    /** Waits for the end of the pause after a failure. */
    async wait(): Promise<void> {
      while (!isClosed && monotonic() < until) await sleep(until - monotonic());
    },
    /** Begins a pause after a failure. Requests that fail during the pause do not extend it. */
    extend(): void {
      if (monotonic() < until) return;
      failures++;
      until = monotonic() + pauseMsAfter(failures);
    },
    /** Makes the next pause short again. */
    reset(): void {
      failures = 0;
    },
    /** Cancels all pauses; their promises stay pending. */
    close(): void {
      isClosed = true;
      for (const cancel of cancels) cancel();
    },
  };
}
