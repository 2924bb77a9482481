// Serves until a signal comes: the first ends gracefully, the second at once; SIGHUP reads the configuration again.
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import type { Config } from '../config/schema.js';
import { type GraceOptions, createGrace } from './shutdown.js';
import type { ReadAgain } from './reload.js';
import { type Service, serve } from './serve.js';
import { INSTANCE_VARIABLE, WORKERS_VARIABLE, servePrimary } from './cluster/primary.js';
import { runWorker } from './cluster/worker.js';

/** Lets the last log line out after the requests under way had their time. */
const SPARE_MS = 1500;

/**
 * By default V8 lets garbage grow until the heap is about twice what lives. With 256 MiB of records on the heap,
 * which came and went, one run each ended with 418 MiB of RSS by default and 343 with a quarter. Records are kept
 * elsewhere now, but not their keys nor what answers are prepared.
 */
const LIMIT_GARBAGE = '--heap-growing-percent=25';

/** This process is one of the workers. */
export async function runAsWorker(): Promise<void> {
  setFlagsFromString(LIMIT_GARBAGE);
  const { [WORKERS_VARIABLE]: count, [INSTANCE_VARIABLE]: instance = '' } = process.env;
  await runWorker({ count: Number(count), instance });
}

/** This process is the only one, or the primary of several. */
export async function run(config: Config, read: ReadAgain): Promise<void> {
  setFlagsFromString(LIMIT_GARBAGE);
  const count = config.server.workers || availableParallelism();
  const starting = count === 1 ? serve(config) : servePrimary(config, count);
  // At a terminal it means that the terminal is gone.
  const isForReload = !process.stdin.isTTY;
  if (isForReload) onHangup(starting, read);
  stopOnSignal(config, await starting, { skip: isForReload ? ['SIGHUP'] : [] });
}

/** One that comes early waits; of a start that fails others tell. */
function onHangup(starting: Promise<Service>, read: ReadAgain): void {
  const reload = (service: Service): void => {
    service.reload(read);
  };
  process.on('SIGHUP', () => void starting.then(reload, () => undefined));
}

export interface StopOptions {
  /** What else runs in this process. */
  alsoStop?: () => Promise<void>;
  /** Signals that mean something else. */
  skip?: GraceOptions['skip'];
}

export function stopOnSignal(
  config: Config,
  service: Service,
  { alsoStop = () => Promise.resolve(), skip = [] }: StopOptions = {},
): void {
  createGrace({
    skip,
    delayMs: config.server.shutdownTimeout + SPARE_MS,
    failed: service.failed,
    async stop(timeoutMs) {
      await service.stop(timeoutMs);
      await alsoStop();
    },
  });
}
