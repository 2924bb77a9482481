// The primary: starts workers and replaces those that end, passes on what they say, serves the operator.
import cluster, { type Worker } from 'node:cluster';
import { type Member, createOperations } from '../../admin/operations.js';
import type { Config } from '../../config/schema.js';
import { type Told, createClusterMetrics } from '../../observe/cluster-metrics.js';
import { type Logger, createLogger, flushLog } from '../../observe/logger.js';
import { createReadiness } from '../../observe/readiness.js';
import { createReload } from '../reload.js';
import { type Service, announce, logUncaught, serveAdmin } from '../serve.js';
import { makeAdmin } from '../../compose/admin.js';
import { newInstance } from '../../compose/parts.js';
import { Backoff } from './restart-backoff.js';
import { CoherenceHub, makeRedisOptions } from './coherence-hub.js';
import { Calls } from './process-control.js';
import { type Up, unwrap, wrap } from './messages.js';
import type { RelayWorker } from './relay.js';
import { heapMiB } from './divide-limits.js';
import { States } from './worker-readiness.js';

/** Where a worker finds what it has to know beside the configuration. */
export const WORKERS_VARIABLE = 'HANDLE_PROXY_WORKERS';
export const INSTANCE_VARIABLE = 'HANDLE_PROXY_INSTANCE';

/** @throws Error when a worker cannot start */
export async function servePrimary(config: Config, count: number): Promise<Service> {
  const logger = createLogger({ level: config.log.level });
  const crew = new Crew(config, { count, logger });
  const url = await crew.start();
  const readiness = createReadiness();
  readiness.register('workers', () => crew.isReady());
  readiness.register('event loop', () => config.admin.maxEventLoopDelay === 0 || crew.isInTime());
  const metrics = createClusterMetrics(() => crew.metrics());
  const operations = createOperations(() => crew.members(), Date.now);
  const setLogLevel = async (level: string): Promise<void> => {
    logger.level = level;
    await operations.setLogLevel(level);
  };
  const admin = await serveAdmin(
    config,
    makeAdmin({ config, logger }, { metrics, readiness, operations: { ...operations, setLogLevel } }),
  );
  announce(config, logger, { url, adminUrl: admin.url });
  const apply = (next: Config): void => {
    crew.reload(next);
  };
  return {
    url,
    adminUrl: admin.url,
    reload: createReload({ config, logger, apply }),
    failed: logUncaught(logger),
    async stop() {
      logger.info('stopping');
      await crew.stop();
      await admin.stop();
      logger.info('stopped');
      await flushLog(logger);
    },
  };
}

class Crew {
  readonly #coherence: CoherenceHub;
  readonly #calls = new Calls();
  readonly #states = new States();
  readonly #listening = new Set<number>();
  readonly #count: number;
  readonly #logger: Logger;
  readonly #environment: Record<string, string>;
  /** What each worker was given. */
  readonly #configured = new WeakMap<Worker, Config>();
  #config: Config;
  #stopping = false;

  constructor(config: Config, { count, logger }: { count: number; logger: Logger }) {
    this.#config = config;
    this.#count = count;
    this.#logger = logger;
    this.#environment = { [WORKERS_VARIABLE]: String(count), [INSTANCE_VARIABLE]: newInstance() };
    this.#coherence = new CoherenceHub(makeRedisOptions(config, logger));
    // A second signal ends the primary at once: its workers must not linger.
    process.once('exit', () => {
      for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL');
    });
    // Workers accept by themselves: a connection the primary has handed to a worker that is killed
    // that moment would hang for ever, as nobody closes it.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({
      execArgv: [...process.execArgv, `--max-old-space-size=${heapMiB(config, count)}`],
    });
  }

  /** Resolves with the public address when all listen; rejects when one ends before. */
  async start(): Promise<string> {
    const urls = await Promise.all(Array.from({ length: this.#count }, () => this.#begin()));
    return urls[0] ?? '';
  }

  isReady(): boolean {
    return !this.#stopping && this.#listening.size > 0;
  }

  isInTime(): boolean {
    return this.#states.isOneReady(performance.now());
  }

  /** Those that listen. */
  members(): Member[] {
    return [...this.#listening].flatMap((id) => {
      const worker = cluster.workers?.[id];
      return worker === undefined ? [] : [this.#memberOf(worker)];
    });
  }

  metrics(): Promise<Told[]> {
    return Promise.all(
      [...this.#listening].map(async (id) => {
        const worker = cluster.workers?.[id];
        const asked = worker && this.#memberOf(worker).metrics();
        return { id, snapshot: await asked?.catch(() => undefined) };
      }),
    );
  }

  #memberOf(worker: Worker): Member {
    return this.#calls.memberOf((message) => {
      if (!worker.isConnected()) throw new Error('the worker has ended');
      worker.send(wrap(message));
    });
  }

  /** For all workers, and for those that replace them. */
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
        worker.send(wrap({ kind: 'stop' }));
        await ended;
      }),
    );
    await this.#coherence.close();
  }

  /** `backoff`: of its place, which a replacement takes over. */
  #begin(backoff = new Backoff()): Promise<string> {
    const worker = cluster.fork(this.#environment);
    // A message to one that is ending cannot be delivered: its exit says all there is to say.
    worker.on('error', () => undefined);
    let servesSince = Infinity;
    return new Promise((resolve, reject) => {
      worker.on('message', (received: unknown) => {
        const message = unwrap(received) as Up | undefined;
        if (message?.kind === 'listening') {
          servesSince = performance.now();
          resolve(message.url);
        }
        if (message !== undefined) this.#handle(worker, message);
      });
      worker.once('exit', (code) => {
        const wasServing = this.#forget(worker);
        const servedMs = performance.now() - servesSince;
        if (wasServing) this.#replace({ worker: worker.process.pid, code }, backoff, servedMs);
        else reject(new Error(`a worker ended with code ${code} before it listened`));
      });
    });
  }

  #handle(worker: Worker, message: Up): void {
    if (message.kind === 'beginning') this.#configure(worker);
    else if (message.kind === 'state') this.#states.told(worker.id, message.isReady, performance.now());
    else if (message.kind === 'listening') {
      this.#listening.add(worker.id);
      this.#states.told(worker.id, true, performance.now());
      if (this.#configured.get(worker) !== this.#config) this.#configure(worker);
      // It may have been changed since the start.
      void this.#memberOf(worker)
        .setLogLevel(this.#logger.level)
        .catch(() => undefined);
      void this.#coherence.join(toRelay(worker));
    } else if (message.kind === 'reply') this.#calls.settle(message);
    else this.#coherence.receive(toRelay(worker), message);
  }

  /** Tells whether it was serving. */
  #forget(worker: Worker): boolean {
    this.#states.left(worker.id);
    this.#coherence.leave(worker.id);
    return this.#listening.delete(worker.id);
  }

  #replace(ended: object, backoff: Backoff, servedMs = 0): void {
    if (this.#stopping) return;
    const inMs = backoff.waitMs(servedMs);
    this.#logger.error({ ...ended, inMs }, 'a worker ended: it is replaced');
    setTimeout(() => {
      if (this.#stopping) return;
      this.#begin(backoff).catch((error: unknown) => {
        this.#replace({ err: error }, backoff);
      });
    }, inMs);
  }
}

const toRelay = (worker: Worker): RelayWorker => ({
  id: worker.id,
  send: (message) => {
    if (worker.isConnected()) worker.send(wrap(message));
  },
});
