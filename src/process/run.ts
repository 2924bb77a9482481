// Serves until a signal; SIGHUP reloads the configuration.
import { setFlagsFromString } from 'node:v8';
import { lastSnapshotMs } from '../cache/snapshot/restoring.js';
import { ConfigError, type ConfigSources, loadStartConfig, processSources } from '../config/load.js';
import type { Config } from '../config/schema.js';
import { createLogger } from '../observe/logger.js';
import { ListenError } from './listen.js';
import { type Service, serve } from './serve.js';
import { createSystemdNotifier } from './systemd.js';
import { SHUTDOWN_SPARE_MS, type ShutdownOptions, closeOnSignal, stopWithNpmShell } from './shutdown.js';

/**
 * How much the heap grows until V8 collects all of it; by default 40 % to 300 %, by the limit of the heap. Records are
 * off-heap. With a full cache of 358 MiB under churn: 537 MiB of RSS by default, 493 with 100 %, and 449 with 25 %, which
 * collected every 1,100 misses and took an eighth of their time.
 */
const HEAP_GROWTH = '--heap-growing-percent=100';

/**
 * By default V8 makes objects that were kept for long at the start in the old generation from then on. Those of a miss
 * live for milliseconds; made there, they kept whatever they refer to until the next full collection: a seventh of the
 * CPU of a miss.
 */
const NO_PRETENURING = '--no-allocation-site-pretenuring';

/** `config` is the configuration file, by default the one that CONFIG names. */
export async function run({ config: file }: { config?: string } = {}): Promise<void> {
  setFlagsFromString(HEAP_GROWTH);
  setFlagsFromString(NO_PRETENURING);
  await exitOnFailure(() => serveUntilSignal(processSources(file)));
}

/** Writes the reason of a failed start to stderr and exits: with 2 as for wrong usage, where the configuration is the reason. */
export async function exitOnFailure(start: () => Promise<void>): Promise<void> {
  try {
    await start();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const isConfig = error instanceof ConfigError || error instanceof ListenError;
    process.stderr.write(isConfig ? `${reason}\n` : `The proxy cannot start: ${reason}\n`);
    process.exit(isConfig ? 2 : 1);
  }
}

async function serveUntilSignal(sources: ConfigSources): Promise<void> {
  const { config } = loadStartConfig(sources);
  const logger = createLogger({ level: config.log.level });
  const starting = serve(config, logger);
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

/** A SIGHUP during the start waits for its end. */
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
