// Serves until a signal; SIGHUP reloads the configuration.
import { setFlagsFromString } from 'node:v8';
import { lastSnapshotMs } from '../cache/snapshot/restoring.js';
import { ConfigError, type ConfigSources, loadStartConfig, processSources } from '../config/load.js';
import type { Config } from '../config/schema.js';
import { type LogDestination, type Logger, createLogger } from '../observe/logger.js';
import { ListenError } from './listen.js';
import { type Service, serve } from './serve.js';
import { createSystemdNotifier } from './systemd.js';
import { SHUTDOWN_SPARE_MS, type ShutdownOptions, closeOnSignal, stopWithNpmShell } from './shutdown.js';

/**
 * Growth of the heap until V8 collects all of it; by default 40 % to 300 %, depending on the limit of the heap. Records are
 * off-heap, so a smaller value saves memory; one below 100 % makes misses slower, because it collects too often.
 */
const HEAP_GROWTH = '--heap-growing-percent=100';

/**
 * By default V8 learns from objects that live long at the start, and allocates later ones in the old generation. Objects of
 * a miss live for milliseconds; allocated there, they would retain all that they refer to until the next full collection.
 */
const NO_PRETENURING = '--no-allocation-site-pretenuring';

/** `config`: path of the configuration file; by default the value of CONFIG. */
export async function run({ config: file }: { config?: string } = {}): Promise<void> {
  setFlagsFromString(HEAP_GROWTH);
  setFlagsFromString(NO_PRETENURING);
  await exitOnFailure(() => serveUntilSignal(processSources(file)));
}

/** Writes the reason of a failed start to stderr and exits: with 2, as for wrong usage, if the configuration is the reason. */
export async function exitOnFailure(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { text, exitCode } = explainFailure(error);
    process.stderr.write(text);
    process.exit(exitCode);
  }
}

/** The message and the exit code of a failed start. */
export function explainFailure(error: unknown): { text: string; exitCode: 1 | 2 } {
  const reason = error instanceof Error ? error.message : String(error);
  const isConfig = error instanceof ConfigError || error instanceof ListenError;
  return isConfig
    ? { text: `${reason}\n`, exitCode: 2 }
    : { text: `The proxy cannot start: ${reason}\n`, exitCode: 1 };
}

/**
 * Loads the configuration and opens the listeners.
 *
 * @throws ConfigError when the configuration is invalid
 */
export function start(
  sources: ConfigSources,
  destination?: LogDestination,
): { config: Config; logger: Logger; starting: Promise<Service> } {
  const { config, ignored } = loadStartConfig(sources);
  const logger = createLogger({ level: config.log.level, ...(destination && { destination }) });
  const variables = ignored.map(({ source, text }) => `${source}: ${text}`);
  if (variables.length > 0) logger.warn({ variables }, 'unknown variables are ignored');
  return { config, logger, starting: serve(config, logger) };
}

async function serveUntilSignal(sources: ConfigSources): Promise<void> {
  const { config, logger, starting } = start(sources);
  // At a terminal SIGHUP means that the terminal has closed.
  const isReload = !process.stdin.isTTY;
  if (isReload) reloadOnHangup(starting, sources);
  const systemd = createSystemdNotifier({ logger, env: process.env });
  const { onUncaught, stop } = await starting;
  systemd.listening();
  const stopAndNotify: Service['stop'] = (timeoutMs) => {
    systemd.stopping();
    return stop(timeoutMs);
  };
  stopOnSignal(config, { onUncaught, stop: stopAndNotify }, isReload ? ['SIGHUP'] : []);
  stopWithNpmShell();
}

/** A SIGHUP during the start takes effect after it. */
function reloadOnHangup(starting: Promise<Service>, sources: ConfigSources): void {
  const reload = (service: Service): void => {
    service.reload(() => loadStartConfig(sources));
  };
  process.on('SIGHUP', () => void starting.then(reload, () => undefined));
}

export function stopOnSignal(
  config: Config,
  { onUncaught, stop }: Pick<Service, 'onUncaught' | 'stop'>,
  skip: ShutdownOptions['skip'] = [],
): void {
  const delayMs = config.server.shutdownTimeoutMs + lastSnapshotMs(config.cache.snapshot) + SHUTDOWN_SPARE_MS;
  closeOnSignal({ skip, delayMs, onUncaught, stop });
}
