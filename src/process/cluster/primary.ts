// The primary of several workers: starts them, restarts those that exit, routes their messages, serves the admin listener.
import cluster, { type Worker } from 'node:cluster';
import { type ProcessControl, createOperations } from '../../admin/operations.js';
import { makeAdmin } from '../../compose/admin.js';
import { redisOptions } from '../../compose/cache.js';
import { newInstance } from '../../compose/shared-deps.js';
import type { Config } from '../../config/schema.js';
import { type WorkerSnapshot, createClusterMetrics } from '../../observe/cluster-metrics.js';
import { type Logger, flushLog } from '../../observe/logger.js';
import { createReadiness, watchEventLoop } from '../../observe/health.js';
import { createReload } from '../reload.js';
import { StartError } from '../start-error.js';
import { type PublicAddresses, type Service, announce, logUncaught, probeAll, serveAdmin } from '../serve.js';
import { CoherenceHub } from './coherence-hub.js';
import { PoolBalance } from './connection-balance.js';
import { heapMiB } from './divide-limits.js';
import { type WorkerMessage, unwrap, wrap } from './messages.js';
import { WorkerCalls } from './process-control.js';
import { toRelay } from './relay.js';
import { ListenerBarrier, PoolReadiness, RestartBackoff } from './worker-readiness.js';

/** Environment of a worker: everything else is in the configuration, which the primary sends. */
export const WORKERS_VARIABLE = 'HANDLE_PROXY_WORKERS';
export const INSTANCE_VARIABLE = 'HANDLE_PROXY_INSTANCE';

/** @throws Error when a worker cannot start */
export async function servePrimary(
  config: Config,
  { count, logger }: { count: number; logger: Logger },
): Promise<Service> {
  const workers = new WorkerPool(config, { count, logger });
  const addresses = await workers.start();
  const readiness = createReadiness();
  readiness.register('workers', () => workers.isReady());
  readiness.include(() => workers.notReady());
  const metrics = createClusterMetrics(() => workers.metrics());
  const operations = createOperations(() => workers.processes(), Date.now);
  const eventLoop = watchEventLoop(config.admin.maxEventLoopDelayMs);
  const heldMs = (): number | undefined => eventLoop.heldMs() ?? workers.heldMs();
  const setLogLevel = async (level: string): Promise<void> => {
    logger.level = level;
    await operations.setLogLevel(level);
  };
  const admin = await serveAdmin(
    config,
    makeAdmin({ config, logger }, { metrics, readiness, heldMs, operations: { ...operations, setLogLevel } }),
  );
  announce(config, logger, { ...addresses, adminUrl: admin.url });
  const cancelProbes = probeAll(config, logger, workers);
  const apply = (next: Config): void => {
    workers.reload(next);
  };
  return {
    ...addresses,
    adminUrl: admin.url,
    reload: createReload({ config, logger, apply }),
    onUncaught: logUncaught(logger),
    async stop() {
      logger.info('stopping');
      cancelProbes();
      await workers.stop();
      await admin.stop();
      eventLoop.close();
      logger.info('stopped');
      await flushLog(logger);
    },
  };
}

class WorkerPool {
  readonly #coherence: CoherenceHub;
  readonly #calls = new WorkerCalls();
  readonly #readiness: PoolReadiness;
  readonly #balance = new PoolBalance();
  readonly #listening = new Set<number>();
  readonly #count: number;
  readonly #logger: Logger;
  readonly #environment: Record<string, string>;
  /** The configuration that each worker has. */
  readonly #configured = new WeakMap<Worker, Config>();
  #config: Config;
  #stopping = false;
  readonly #barrier = new ListenerBarrier();

  constructor(config: Config, { count, logger }: { count: number; logger: Logger }) {
    this.#config = config;
    this.#count = count;
    this.#logger = logger;
    this.#readiness = new PoolReadiness(config.admin);
    this.#environment = { [WORKERS_VARIABLE]: String(count), [INSTANCE_VARIABLE]: newInstance() };
    this.#coherence = new CoherenceHub(redisOptions({ config, logger }));
    // A second signal ends the primary at once: its workers must not outlive it.
    process.once('exit', () => {
      for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL');
    });
    // Each worker accepts by itself: with round-robin a connection that the primary hands to a worker that is killed
    // at that moment would stay open for ever.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({
      execArgv: [...process.execArgv, `--max-old-space-size=${heapMiB(config, count)}`],
    });
  }

  /** @returns the addresses when all workers listen. @throws Error when one exits before */
  async start(): Promise<PublicAddresses> {
    const [first] = await Promise.all(Array.from({ length: this.#count }, () => this.#startWorker()));
    return first ?? { url: '' };
  }

  isReady(): boolean {
    return !this.#stopping && this.#listening.size > 0;
  }

  /** The failed checks of the workers. */
  notReady(): string[] {
    return this.#readiness.notReady(performance.now());
  }

  /** For how long a worker has stood still, now or a moment ago. */
  heldMs(): number | undefined {
    return this.#readiness.heldMs(performance.now());
  }

  readonly upstreamAnswered = (): void => {
    this.#readiness.upstreamAnswered();
  };

  /** The workers that listen. */
  processes(): ProcessControl[] {
    return [...this.#listening].flatMap((id) => {
      const worker = cluster.workers?.[id];
      return worker === undefined ? [] : [this.#controlOf(worker)];
    });
  }

  metrics(): Promise<WorkerSnapshot[]> {
    return Promise.all(
      [...this.#listening].map(async (id) => {
        const worker = cluster.workers?.[id];
        const metrics = worker && this.#controlOf(worker).metrics();
        return { id, snapshot: await metrics?.catch(() => undefined) };
      }),
    );
  }

  #controlOf(worker: Worker): ProcessControl {
    return this.#calls.controlOf((message) => {
      if (!worker.isConnected()) throw new Error('the worker has exited');
      worker.send(wrap(message));
    });
  }

  /** For all workers and their successors. */
  reload(config: Config): void {
    this.#config = config;
    for (const id of this.#listening) this.#configure(cluster.workers?.[id]);
  }

  #configure(worker: Worker | undefined): void {
    if (!worker?.isConnected()) return;
    this.#configured.set(worker, this.#config);
    worker.send(wrap({ kind: 'config', config: this.#config }));
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    await Promise.all(
      workers.map(async (worker) => {
        const ended = new Promise((resolve) => worker.once('exit', resolve));
        this.#barrier.expect(worker.id);
        worker.send(wrap({ kind: 'stop' }));
        await ended;
      }),
    );
    await this.#coherence.close();
  }

  /** A restarted worker takes over the backoff of its predecessor. */
  #startWorker(backoff = new RestartBackoff()): Promise<PublicAddresses> {
    const worker = cluster.fork(this.#environment);
    // A message to an exiting worker cannot be delivered; its exit event follows.
    worker.on('error', () => undefined);
    let servesSince = Infinity;
    let failure: StartError | undefined;
    return new Promise((resolve, reject) => {
      worker.on('message', (received: unknown) => {
        const message = unwrap(received) as WorkerMessage | undefined;
        if (message?.kind === 'listening') {
          servesSince = performance.now();
          resolve(message.addresses);
        }
        if (message?.kind === 'start-failed') failure = new StartError(message.reason, message);
        else if (message !== undefined) this.#handle(worker, message);
      });
      worker.once('exit', (code) => {
        const wasServing = this.#remove(worker);
        const servedMs = performance.now() - servesSince;
        if (wasServing) this.#restart({ worker: worker.process.pid, code }, backoff, servedMs);
        else reject(failure ?? new Error(`a worker exited with code ${code} before it listened`));
      });
    });
  }

  #handle(worker: Worker, message: Exclude<WorkerMessage, { kind: 'start-failed' }>): void {
    if (message.kind === 'starting') this.#configure(worker);
    else if (message.kind === 'report') this.#report(worker, message);
    else if (message.kind === 'listening') {
      this.#listening.add(worker.id);
      this.#readiness.started(worker.id, performance.now());
      if (this.#configured.get(worker) !== this.#config) this.#configure(worker);
      // The operator may have changed it since the start.
      void this.#controlOf(worker)
        .setLogLevel(this.#logger.level)
        .catch(() => undefined);
      void this.#coherence.join(toRelay(worker));
    } else if (message.kind === 'call-reply') this.#calls.settle(message);
    else if (message.kind === 'listener-closed') this.#listenerClosed(worker.id);
    else this.#coherence.receive(toRelay(worker), message);
  }

  #report(worker: Worker, { notReady, load }: Extract<WorkerMessage, { kind: 'report' }>): void {
    const now = performance.now();
    this.#readiness.report(worker.id, notReady, now);
    const count = this.#balance.report(worker.id, load, now);
    if (count > 0) worker.send(wrap({ kind: 'end-connections', count }));
  }

  #listenerClosed(closed: number): void {
    for (const id of this.#barrier.closed(closed)) {
      const worker = cluster.workers?.[id];
      if (worker?.isConnected()) worker.send(wrap({ kind: 'listeners-closed' }));
    }
  }

  /** @returns whether the worker was serving */
  #remove(worker: Worker): boolean {
    this.#readiness.remove(worker.id);
    this.#balance.remove(worker.id);
    this.#coherence.leave(worker.id);
    this.#listenerClosed(worker.id);
    return this.#listening.delete(worker.id);
  }

  #restart(ended: object, backoff: RestartBackoff, servedMs = 0): void {
    if (this.#stopping) return;
    const inMs = backoff.delayMs(servedMs);
    this.#logger.error({ ...ended, inMs }, 'worker exited, restarting');
    setTimeout(() => {
      if (this.#stopping) return;
      this.#startWorker(backoff).catch((error: unknown) => {
        this.#restart({ err: error }, backoff);
      });
    }, inMs);
  }
}
