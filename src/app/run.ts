// Runs the proxy until a signal; SIGHUP reloads the configuration.
import { setFlagsFromString } from 'node:v8';
import { ConfigError, type ConfigSources, processSources } from '../config/load.js';
import { loadStartConfig } from './config.js';
import { shutdownMsOf } from './plugin.js';
import { PLUGINS } from './plugins.js';
import type { Config } from '../config/schema.js';
import { type LogDestination, type Logger, createLogger } from '../observe/logger.js';
import { ListenError } from './listen.js';
import { type Service, serve } from './serve.js';
import { createSystemdNotifier } from './systemd.js';
import { SHUTDOWN_SPARE_MS, type ShutdownOptions, closeOnSignal, stopWithNpmShell } from './shutdown.js';

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

/**
 * Writes the reason for a failed start to stderr and exits: with code 2 for a configuration error, otherwise
 * with 1.
 */
export async function exitOnFailure(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { text, exitCode } = explainFailure(error);
    process.stderr.write(text);
    process.exit(exitCode);
  }
}

/** Returns the message and the exit code of a failed start. */
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
  // SIGHUP in a terminal means that the terminal has closed.
  const isReload = !process.stdin.isTTY;
  if (isReload) reloadOnHangup(starting, sources);
  const systemd = createSystemdNotifier({ logger, env: process.env });
  const service = await starting;
  systemd.listening();
  const stop: Service['stop'] = (timeoutMs) => {
    systemd.stopping();
    return service.stop(timeoutMs);
  };
  stopOnSignal(config, { ...service, stop }, isReload ? ['SIGHUP'] : []);
  stopWithNpmShell();
}

/** Reloads on SIGHUP. A SIGHUP during startup takes effect afterwards. */
function reloadOnHangup(starting: Promise<Service>, sources: ConfigSources): void {
  const reload = (service: Service): void => {
    service.reload(() => loadStartConfig(sources));
  };
  process.on('SIGHUP', () => void starting.then(reload, () => undefined));
}

/** Stops the service on a signal, except those to `skip`. `onStopped` may close the demo's Handle server. */
export function stopOnSignal(
  config: Config,
  { onUncaught, stop }: Service,
  skip: ShutdownOptions['skip'] = [],
  onStopped?: () => Promise<void>,
): void {
  const delayMs = config.server.shutdownTimeoutMs + shutdownMsOf(PLUGINS, config) + SHUTDOWN_SPARE_MS;
  closeOnSignal({
    skip,
    delayMs,
    onUncaught,
    async stop(timeoutMs) {
      await stop(timeoutMs);
      await onStopped?.();
    },
  });
}
