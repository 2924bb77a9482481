// A worker: serves the public listener, applies the primary's messages, exits with the primary.
import cluster from 'node:cluster';
import { lastSnapshotMs } from '../../compose/snapshot.js';
import type { Config } from '../../config/schema.js';
import { upstreamServers } from '../../config/upstream-servers.js';
import { type ShutdownOptions, createShutdown } from '../shutdown.js';
import { createLogger } from '../../observe/logger.js';
import { createMetrics } from '../../observe/metrics.js';
import { toStartError } from '../start-error.js';
import { logUncaught, servePublic } from '../serve.js';
import { createBalance } from './connection-balance.js';
import { answerCall } from './process-control.js';
import {
  type ControlMessage,
  type PrimaryMessage,
  type WorkerMessage,
  isControl,
  unwrap,
  wrap,
} from './messages.js';
import { PeerLink } from './peer-link.js';
import { divideLimits } from './divide-limits.js';
import { REPORT_INTERVAL_MS } from './worker-readiness.js';
import { systemClock } from '../../cache/clock.js';

/** Another worker's answer arrives a little after the upstream's. */
const LOAD_SPARE_MS = 500;

/** Less than the primary's own. */
const STOP_SPARE_MS = 1000;

/** The primary receives these as well and decides; Ctrl-C reaches the whole process group. */
const HANDLED_BY_PRIMARY: NonNullable<ShutdownOptions['skip']> = ['SIGTERM', 'SIGINT', 'SIGHUP'];

interface WorkerOptions {
  count: number;
  instance: string;
}

/** When it cannot start, the primary gets the reason: each worker would print the same. */
export async function runWorker(options: WorkerOptions): Promise<void> {
  try {
    await serveAsWorker(options);
  } catch (error) {
    const { message: reason, exitCode } = toStartError(error);
    process.send?.(wrap({ kind: 'start-failed', reason, exitCode }), () => process.exit(exitCode));
  }
}

async function serveAsWorker({ count, instance }: WorkerOptions): Promise<void> {
  const config = await receiveConfig();
  const self = cluster.worker?.id ?? 0;
  const metrics = createMetrics();
  const loadTimesMs = upstreamServers(config).map(
    ({ timeoutMs, queueTimeoutMs }) => queueTimeoutMs + timeoutMs,
  );
  const peers = new PeerLink({
    self,
    loadTimeoutMs: Math.max(0, ...loadTimesMs) + LOAD_SPARE_MS,
    send,
    clock: systemClock,
    lostMaxAgeMs: config.redis.lostMaxAgeMs,
  });
  const logger = createLogger({ level: config.log.level });
  const listeners = trackListeners();
  const deps = { logger, metrics, peers, instance };
  const service = await servePublic(divideLimits(config, count), deps, listeners);
  const shutdown = createShutdown({
    delayMs: config.server.shutdownTimeoutMs + lastSnapshotMs(config) + STOP_SPARE_MS,
    skip: HANDLED_BY_PRIMARY,
    onUncaught: logUncaught(logger),
    stop: service.stop,
  });
  for (const signal of HANDLED_BY_PRIMARY) process.on(signal, () => undefined);
  process.once('disconnect', () => {
    shutdown.close();
  });
  const balance = createBalance(service.server);
  const perform = (message: ControlMessage): void => {
    if (message.kind === 'end-connections') balance.end(message.count);
    else if (message.kind === 'config') service.app.reload(divideLimits(message.config, count));
    else if (message.kind === 'call') void answerCall(service.app.control, message, send);
    else if (message.kind === 'stop') shutdown.close();
    else listeners.listenersClosed();
  };
  process.on('message', (received) => {
    const message = unwrap(received) as PrimaryMessage | undefined;
    if (message === undefined) return;
    if (isControl(message)) perform(message);
    else peers.receive(message, service.app);
  });
  send({ kind: 'listening', addresses: service.addresses });
  const report = async (): Promise<void> => {
    const load = await balance.load();
    send({ kind: 'report', notReady: service.app.readiness.report().notReady, load });
  };
  void report();
  setInterval(() => {
    void report();
    peers.renew();
    // Several times within a lease.
  }, REPORT_INTERVAL_MS).unref();
}

/** The primary holds the listener, too: it is closed some time after the last worker has closed it. */
function trackListeners(): { closedByAll: () => Promise<void>; listenersClosed: () => void } {
  let listenersClosed = (): void => undefined;
  const closed = new Promise<void>((resolve) => {
    listenersClosed = resolve;
    process.once('disconnect', resolve);
  });
  return {
    listenersClosed,
    closedByAll() {
      send({ kind: 'listener-closed' });
      return closed;
    },
  };
}

/** From the primary, not from the file: that may have changed since the primary read it. */
function receiveConfig(): Promise<Config> {
  return new Promise((resolve) => {
    process.on('message', function receive(received) {
      const message = unwrap(received) as PrimaryMessage | undefined;
      if (message?.kind !== 'config') return;
      process.off('message', receive);
      resolve(message.config);
    });
    send({ kind: 'starting' });
  });
}

function send(message: WorkerMessage): void {
  if (process.connected) process.send?.(wrap(message));
}
