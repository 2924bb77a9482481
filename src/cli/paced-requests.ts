// Concurrent requests at a bounded rate, and the handling of Ctrl-C.
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

interface RequestPlan<T> {
  concurrency: number;
  /** Maximum requests per second; 0 is unlimited. */
  rate: number;
  /** The next item; undefined ends the run. */
  next: () => T | undefined;
  send: (item: T) => Promise<void>;
}

/** Sends until no item is left, or until SIGINT or SIGTERM. Returns whether it was interrupted. */
export async function sendPaced<T>({ concurrency, rate, next, send }: RequestPlan<T>): Promise<boolean> {
  const { signal, release } = listenForInterrupt();
  const pace = createPace(rate, signal);
  const work = async (): Promise<void> => {
    for (;;) {
      await pace();
      const item = signal.aborted ? undefined : next();
      if (item === undefined) return;
      await send(item);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  release();
  return signal.aborted;
}

/** Returns a function whose promise resolves when the next request may be sent, or when the signal aborts. */
function createPace(rate: number, signal: AbortSignal): () => Promise<void> {
  let nextAt = 0;
  return async function pace() {
    if (rate === 0) return;
    const at = Math.max(performance.now(), nextAt);
    nextAt = at + 1000 / rate;
    await sleep(at - performance.now(), undefined, { signal }).catch(() => undefined);
  };
}

/** The first SIGINT or SIGTERM aborts the signal; the second ends the process, as is Node's default. */
export function listenForInterrupt(): { signal: AbortSignal; release: () => void } {
  const interrupt = new AbortController();
  // Each concurrent sender may listen for the signal, so more than ten listeners are not a leak.
  setMaxListeners(0, interrupt.signal);
  const abort = (): void => {
    release();
    interrupt.abort();
  };
  const release = (): void => {
    process.off('SIGINT', abort);
    process.off('SIGTERM', abort);
  };
  process.on('SIGINT', abort);
  process.on('SIGTERM', abort);
  return { signal: interrupt.signal, release };
}
