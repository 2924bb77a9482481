// Runs this process as the only one, the primary or a worker, until a signal; SIGHUP reloads the configuration.
import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { ConfigError } from '../config/config-error.js';
import { type ConfigSources, loadConfig, loadShown } from '../config/load.js';
import type { Config } from '../config/schema.js';
import { INSTANCE_VARIABLE, WORKERS_VARIABLE, servePrimary } from './cluster/primary.js';
import { runWorker } from './cluster/worker.js';
import { type Service, serve } from './serve.js';
import { SHUTDOWN_SPARE_MS, type ShutdownOptions, createShutdown } from './shutdown.js';

/** Exit code for an unusable configuration: 2 is the convention for wrong usage. */
const EXIT_CONFIG = 2;

/**
 * By default V8 lets the heap double before it collects. With 256 MiB of churned records on the heap one run each ended
 * with 418 MiB of RSS by default and 343 with a quarter. Records are off-heap now; keys and prepared responses are not.
 */
const LIMIT_GARBAGE = '--heap-growing-percent=25';

const SOURCES: ConfigSources = { env: process.env, readFile: (path) => readFileSync(path, 'utf8') };

/** Writes the reason to stderr and exits when the proxy cannot start. */
export async function run(): Promise<void> {
  setFlagsFromString(LIMIT_GARBAGE);
  try {
    if (cluster.isWorker) await runAsWorker();
    else await runAsMain(readConfig());
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`The proxy cannot start: ${reason}\n`);
    process.exit(1);
  }
}

async function runAsWorker(): Promise<void> {
  const { [WORKERS_VARIABLE]: count, [INSTANCE_VARIABLE]: instance = '' } = process.env;
  await runWorker({ count: Number(count), instance });
}

async function runAsMain(config: Config): Promise<void> {
  const count = config.server.workers || availableParallelism();
  const starting = count === 1 ? serve(config) : servePrimary(config, count);
  // At a terminal SIGHUP means that the terminal has closed.
  const isReload = !process.stdin.isTTY;
  if (isReload) reloadOnHangup(starting);
  stopOnSignal(config, await starting, isReload ? ['SIGHUP'] : []);
}

/** A SIGHUP during the start waits for its end. */
function reloadOnHangup(starting: Promise<Service>): void {
  const reload = (service: Service): void => {
    service.reload(() => loadShown(SOURCES));
  };
  process.on('SIGHUP', () => void starting.then(reload, () => undefined));
}

export function stopOnSignal(
  config: Config,
  { onUncaught, stop }: Pick<Service, 'onUncaught' | 'stop'>,
  skip: ShutdownOptions['skip'] = [],
): void {
  createShutdown({ skip, delayMs: config.server.shutdownTimeout + SHUTDOWN_SPARE_MS, onUncaught, stop });
}

function readConfig(): Config {
  try {
    const config = loadConfig(SOURCES);
    if (config.upstream.url !== undefined) return config;
    return exitForConfig(
      'Set UPSTREAM_URL to the address of your Handle server, such as https://handle.example.org:8000',
    );
  } catch (error) {
    if (error instanceof ConfigError) return exitForConfig(error.message);
    throw error;
  }
}

function exitForConfig(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(EXIT_CONFIG);
}
