// Stops the process: gracefully on a signal, quickly after an uncaught exception.
import { closeSync, fstatSync } from 'node:fs';
import { isatty } from 'node:tty';
import closeWithGrace from 'close-with-grace';

/**
 * Maximum time for responses in flight after an uncaught exception, which leaves the process in an unknown
 * state.
 */
const AFTER_EXCEPTION_MS = 1000;

/** Time for closing connections and writing the log after the last response. */
export const SHUTDOWN_SPARE_MS = 1500;

/**
 * Minimum interval between a first and a second signal. Ctrl-C in `npm start` arrives twice, because npm
 * forwards a signal that the whole process group has already received.
 */
const REPEATED_SIGNAL_MS = 1000;

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export interface ShutdownOptions {
  /** Maximum duration of a graceful stop (ms). */
  delayMs: number;
  /** Signals that must not stop this process, for example SIGHUP if it reloads the configuration. */
  skip?: closeWithGrace.Signals[];
  /** Completes requests in flight within the timeout (ms). */
  stop: (timeoutMs?: number) => Promise<void>;
  onUncaught: (error: unknown) => void;
}

/** Stops the process on a signal, and after an uncaught exception. */
export function closeOnSignal({ delayMs, skip = [], stop, onUncaught }: ShutdownOptions): void {
  let stoppingSince: number | undefined;
  const options = { delay: delayMs, skip: [...skip, ...STOP_SIGNALS], onSecondError: onUncaught };
  const shutdown = closeWithGrace(options, async (reason) => {
    stoppingSince = performance.now();
    if (!('err' in reason)) {
      await stop();
      return;
    }
    onUncaught(reason.err);
    setTimeout(() => process.exit(1), AFTER_EXCEPTION_MS + SHUTDOWN_SPARE_MS);
    await stop(AFTER_EXCEPTION_MS);
    // close-with-grace would exit with 0 for a rejection without a reason.
    process.exit(1);
  });
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stoppingSince === undefined) shutdown.close();
    else if (performance.now() - stoppingSince >= REPEATED_SIGNAL_MS) exitAtOnce(signal);
  };
  for (const signal of STOP_SIGNALS.filter((each) => !skip.includes(each))) process.on(signal, onSignal);
  process.on('exit', closeLostTerminals);
}

const STDIO = [0, 1, 2];

/**
 * Closes a terminal that has gone. Node.js resets terminals at exit, asserts that this succeeds, and never exits when
 * the assertion fails (seen with 20.20.2, in `node::ResetStdio`); it skips closed files.
 */
function closeLostTerminals(): void {
  for (const file of STDIO) {
    try {
      // A terminal that has gone is no longer one; only /dev/null and the like are closed besides.
      if (fstatSync(file).isCharacterDevice() && !isatty(file)) closeSync(file);
    } catch {
      // It is closed already.
    }
  }
}

function exitAtOnce(signal: NodeJS.Signals): void {
  process.stderr.write(`second ${signal}, exiting\n`);
  process.exit(1);
}

const POLL_MS = 250;

/**
 * Stops when the parent process changes. npm sends SIGTERM only to the shell through which npx has started
 * the proxy, and the shell exits without forwarding it.
 */
export function stopWithNpmShell({ npm_lifecycle_event: event }: NodeJS.ProcessEnv = process.env): void {
  if (event === undefined) return;
  const { ppid } = process;
  const timer = setInterval(() => {
    if (process.ppid === ppid) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, POLL_MS);
  timer.unref();
}
