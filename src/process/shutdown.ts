// Ends this process: gracefully on a signal, soon after an uncaught exception.
import closeWithGrace from 'close-with-grace';

/** After an uncaught exception the state of the process is unknown: responses in flight get no more than this. */
const AFTER_EXCEPTION_MS = 1000;

/** For closing connections and writing the log after the last response. */
export const SHUTDOWN_SPARE_MS = 1500;

export interface ShutdownOptions {
  /** Maximum duration of a graceful stop (ms). */
  delayMs: number;
  /** Signals with another meaning in this process. */
  skip?: closeWithGrace.Signals[];
  /** Completes the requests in flight, within the timeout (ms). */
  stop: (timeoutMs?: number) => Promise<void>;
  onUncaught: (error: unknown) => void;
}

/** Listens for signals and uncaught exceptions; `close` ends the process as a signal does. */
export function createShutdown({ delayMs, skip = [], stop, onUncaught }: ShutdownOptions): {
  close: () => void;
} {
  return closeWithGrace({ delay: delayMs, skip, onSecondError: onUncaught }, async (reason) => {
    if (!('err' in reason)) {
      await stop();
      return;
    }
    onUncaught(reason.err);
    setTimeout(() => process.exit(1), AFTER_EXCEPTION_MS + SHUTDOWN_SPARE_MS);
    await stop(AFTER_EXCEPTION_MS);
    // close-with-grace would exit with 0 when a rejection has no reason.
    process.exit(1);
  });
}
