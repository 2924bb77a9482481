// Ctrl-C, for commands that have something to finish before they end.
import { setMaxListeners } from 'node:events';

/** The first SIGINT or SIGTERM aborts; the next one ends the process, as ever. */
export function untilInterrupted(): { signal: AbortSignal; release: () => void } {
  const interrupt = new AbortController();
  // Everything that is under way may wait for it: that is no leak.
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
