// Reads the configuration and serves until a signal; stops gracefully, or quickly after an uncaught exception.
import { closeSync, fstatSync } from 'node:fs';
import { isatty } from 'node:tty';
import { format } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import closeWithGrace from 'close-with-grace';
import { readRegularText } from '../config/given-files.js';
import { ConfigError, type ConfigSources, processSources } from '../config/load.js';
import type { Config } from '../config/schema.js';
import { errorText } from '../errors.js';
import { type LogDestination, type Logger, createLogger } from '../observe/logger.js';
import { loadStartConfig } from './config.js';
import { ListenError } from './listen.js';
import { PLUGINS } from './plugins.js';
import { type Service, serve } from './serve.js';
import { createSystemdNotifier } from './systemd.js';

/**
 * Heap growth that triggers a full collection. V8's default is 40 % to 300 %, depending on the heap limit.
 * Records are off-heap, so a smaller value saves memory; below 100 %, frequent collections slow down misses.
 */
const HEAP_GROWTH = '--heap-growing-percent=100';

/**
 * Disables pretenuring. V8 learns from long-lived objects at startup, and then allocates similar objects in
 * the old generation. Objects of a miss live for milliseconds; in the old generation they would retain
 * everything they refer to until the next full collection.
 */
const NO_PRETENURING = '--no-allocation-site-pretenuring';

/** Runs the command `serve`. `config`: path of the configuration file; defaults to the value of CONFIG. */
export async function run({ config: file }: { config?: string } = {}): Promise<void> {
  setFlagsFromString(HEAP_GROWTH);
  setFlagsFromString(NO_PRETENURING);
  await exitOnFailure(() => serveUntilSignal(processSources(file)));
}

/** Writes why a start failed to stderr, and exits with 2 for a configuration error, otherwise with 1. */
export async function exitOnFailure(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { text, exitCode } = explainFailure(error);
    process.stderr.write(text);
    process.exit(exitCode);
  }
}

export function explainFailure(error: unknown): { text: string; exitCode: 1 | 2 } {
  const reason = errorText(error);
  const isConfig = error instanceof ConfigError || error instanceof ListenError;
  return isConfig
    ? { text: `${reason}\n`, exitCode: 2 }
    : { text: `The proxy cannot start: ${reason}\n`, exitCode: 1 };
}

/** Loads the configuration and opens the listeners. @throws ConfigError when it is invalid */
export function start(
  sources: ConfigSources,
  destination?: LogDestination,
): { config: Config; logger: Logger; starting: Promise<Service> } {
  const { config, ignored } = loadStartConfig(sources);
  const logger = createLogger({ level: config.log.level, destination });
  const variables = ignored.map(({ source, text }) => `${source}: ${text}`);
  if (variables.length > 0) logger.warn({ variables }, 'unknown variables are ignored');
  return { config, logger, starting: serve(config, logger) };
}

/** Logs what libraries print: ioredis warns of a superfluous password at each connection. */
function logConsole(logger: Logger): void {
  const printed = new Set<string>();
  const warn = (...given: unknown[]): void => {
    const text = format(...given);
    if (!printed.has(text)) logger.warn({ text }, 'warning of a library');
    printed.add(text);
  };
  Object.assign(console, { warn });
}

async function serveUntilSignal(sources: ConfigSources): Promise<void> {
  const { config, logger, starting } = start(sources);
  logConsole(logger);
  // SIGHUP in a terminal means that the terminal has closed.
  const isReload = !process.stdin.isTTY;
  if (isReload) reloadOnHangup(starting, sources);
  const systemd = createSystemdNotifier(logger, process.env);
  const service = await starting;
  systemd.listening();
  const stop: Service['stop'] = (timeoutMs) => {
    systemd.stopping();
    return service.stop(timeoutMs);
  };
  stopOnSignal(config, { ...service, stop }, isReload ? ['SIGHUP'] : []);
  stopWithNpmShell();
  // Programs that start the proxy wait for `listening`, which the buffer would hold for 100 ms. They may send a signal now.
  logger.flush();
}

/** Reloads on SIGHUP. A SIGHUP during startup takes effect afterwards. */
function reloadOnHangup(starting: Promise<Service>, sources: ConfigSources): void {
  const reload = (service: Service): void => {
    service.reload(() => loadStartConfig({ ...sources, readFile: readRegularText, isReload: true }));
  };
  process.on('SIGHUP', () => void starting.then(reload, () => undefined));
}

/** Time for responses in flight after an uncaught exception, which leaves the process in an unknown state. */
const AFTER_EXCEPTION_MS = 1000;

/** Time in which plugins close that ask for no more, a second, and then the cache: a Redis that hangs takes it two leases. */
const CACHE_CLOSE_MS = 5500;

/** Time for closing connections and writing the log after the last response. */
const SHUTDOWN_SPARE_MS = 1500;

/** Minimum time to a second signal, because npm forwards a Ctrl-C that the process group has received. */
const REPEATED_SIGNAL_MS = 1000;

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

const maxStopMs = (config: Config): number =>
  config.server.shutdownDelayMs +
  config.server.shutdownTimeoutMs +
  // Plugins close concurrently.
  Math.max(CACHE_CLOSE_MS, ...PLUGINS.map((plugin) => plugin.shutdownMs?.(config) ?? 0)) +
  SHUTDOWN_SPARE_MS;

/** Stops the process on a signal, except those to `skip`, as SIGHUP if it reloads, and after an uncaught exception. */
export function stopOnSignal(
  config: Config,
  { onUncaught, stop }: Service,
  skip: readonly 'SIGHUP'[] = [],
): void {
  let stoppingSince: number | undefined;
  const options = { delay: maxStopMs(config), skip: [...skip, ...STOP_SIGNALS], onSecondError: onUncaught };
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
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  process.on('exit', closeLostTerminals);
}

const STDIO = [0, 1, 2];

/**
 * Closes a terminal that was disconnected. Node.js resets terminals at exit, asserts that this succeeds, and never exits when
 * the assertion fails (seen with 20.20.2, in `node::ResetStdio`); it skips closed files.
 */
function closeLostTerminals(): void {
  for (const file of STDIO) {
    try {
      // `isatty` is false for a disconnected terminal. The only other such files are devices like /dev/null, which may be closed.
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

/** Stops when the parent changes: npx gets its SIGTERM in a shell, which exits without forwarding it. */
function stopWithNpmShell({ npm_lifecycle_event: event }: NodeJS.ProcessEnv = process.env): void {
  if (event === undefined) return;
  const { ppid } = process;
  const timer = setInterval(() => {
    if (process.ppid === ppid) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, POLL_MS);
  timer.unref();
}
