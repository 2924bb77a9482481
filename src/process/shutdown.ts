// Ends this process: in its own time when it is asked to, soon when it has failed.
import closeWithGrace from 'close-with-grace';

/** Nobody knows what still works after an error that nobody caught: answers under way get no more than this. */
const AFTER_FAILURE_MS = 1000;

/** For what has to be closed and written after the requests under way. */
const SPARE_MS = 1500;

export interface GraceOptions {
  /** How long a stop may take (ms). */
  delayMs: number;
  /** Signals that are none for this process. */
  skip?: closeWithGrace.Signals[];
  /** Lets requests under way come to their end, but no longer than told (ms). */
  stop: (timeoutMs?: number) => Promise<void>;
  /** Told of what nobody caught. */
  failed: (error: unknown) => void;
}

/** Listens for signals and for errors that nobody caught; `close` ends the process as a signal does. */
export function createGrace({ delayMs, skip = [], stop, failed }: GraceOptions): { close: () => void } {
  return closeWithGrace({ delay: delayMs, skip, onSecondError: failed }, async (reason) => {
    if (!('err' in reason)) {
      await stop();
      return;
    }
    failed(reason.err);
    setTimeout(() => process.exit(1), AFTER_FAILURE_MS + SPARE_MS);
    await stop(AFTER_FAILURE_MS);
    // A rejection may be without a reason; this is no normal end for all that.
    process.exit(1);
  });
}
