// Ends this process: gracefully on a signal, soon after an uncaught exception.
import closeWithGrace from 'close-with-grace';

/** After an uncaught exception the state of the process is unknown: responses in flight get no more than this. */
const AFTER_EXCEPTION_MS = 1000;

/** For closing connections and writing the log after the last response. */
export const SHUTDOWN_SPARE_MS = 1500;

/**
 * npm passes a signal on that its whole process group has received: Ctrl-C in `npm start` comes twice. Only a later
 * signal is a second one.
 */
const REPEATED_SIGNAL_MS = 1000;

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export interface ShutdownOptions {
  /** Maximum duration of a graceful stop (ms). */
  delayMs: number;
  /** Signals with another meaning in this process. */
  skip?: closeWithGrace.Signals[];
  /** Completes the requests in flight, within the timeout (ms). */
  stop: (timeoutMs?: number) => Promise<void>;
  onUncaught: (error: unknown) => void;
}

/** Ends the process on a signal, and after an uncaught exception. */
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
    // close-with-grace would exit with 0 when a rejection has no reason.
    process.exit(1);
  });
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stoppingSince === undefined) shutdown.close();
    else if (performance.now() - stoppingSince >= REPEATED_SIGNAL_MS) exitAtOnce(signal);
  };
  for (const signal of STOP_SIGNALS.filter((each) => !skip.includes(each))) process.on(signal, onSignal);
}

function exitAtOnce(signal: NodeJS.Signals): void {
  process.stderr.write(`second ${signal}, exiting\n`);
  process.exit(1);
}

const POLL_MS = 250;

/**
 * Stops with the shell through which npx has started the proxy. npm sends SIGTERM to the shell only, and a shell ends without passing it on: the
 * process gets another parent.
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
