// Sends concurrent requests at a bounded rate, and handles Ctrl-C.
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

interface RequestPlan<T> {
  concurrency: number;
  /** Maximum requests per second; 0 is unlimited. */
  rate: number;
  /** Returns the next item, or undefined to end the run. */
  next: () => T | undefined;
  /** `signal` is aborted by the interrupt. */
  send: (item: T, signal: AbortSignal) => Promise<void>;
}

/** Sends all items unless SIGINT or SIGTERM arrives first. Returns whether the run was interrupted. */
export async function sendPaced<T>({ concurrency, rate, next, send }: RequestPlan<T>): Promise<boolean> {
  const { signal, release } = listenForInterrupt();
  const ended = new AbortController();
  const pace = createRatePace(rate, unlimited(AbortSignal.any([signal, ended.signal])));
  const work = async (): Promise<void> => {
    for (;;) {
      await pace();
      const item = signal.aborted ? undefined : next();
      if (item === undefined) break;
      await send(item, signal);
    }
    // The other senders have nothing to wait for.
    ended.abort();
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  release();
  return signal.aborted;
}

/** Creates a rate limiter; its promise resolves when the next request may start or the signal aborts. */
function createRatePace(rate: number, signal: AbortSignal): () => Promise<void> {
  let nextAt = 0;
  return async function pace() {
    if (rate === 0) return;
    const at = Math.max(performance.now(), nextAt);
    nextAt = at + 1000 / rate;
    // Node.js 24 warns of a negative time.
    await sleep(Math.max(0, at - performance.now()), undefined, { signal }).catch(() => undefined);
  };
}

/** Disables the listener-leak warning, because each concurrent sender may listen for the signal. */
function unlimited(signal: AbortSignal): AbortSignal {
  setMaxListeners(0, signal);
  return signal;
}

/** Aborts the signal on the first SIGINT or SIGTERM; the second ends the process, as is Node's default. */
export function listenForInterrupt(): { signal: AbortSignal; release: () => void } {
  const interrupt = new AbortController();
  unlimited(interrupt.signal);
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
