// One worker: serves the public listener, obeys the primary, ends when the primary is gone.
import cluster from 'node:cluster';
import type { Config } from '../../config/schema.js';
import { type GraceOptions, createGrace } from '../shutdown.js';
import { createLogger } from '../../observe/logger.js';
import { createMetrics } from '../../observe/metrics.js';
import { logUncaught, servePublic } from '../serve.js';
import { answerCall } from './process-control.js';
import { type Down, type Up, unwrap, wrap } from './messages.js';
import { PeerLink } from './peer-link.js';
import { shareOf } from './divide-limits.js';
import { systemClock } from '../../cache/clock.js';

/** An answer of a peer comes a little after that of the upstream. */
const ASK_SPARE_MS = 500;

/** Less than the primary allows itself. */
const SPARE_MS = 1000;

/** Several times in the life of a lease. */
const STATE_EVERY_MS = 400;

/** The primary gets these too, and says what to do; Ctrl-C reaches the whole group at once. */
const OF_PRIMARY: NonNullable<GraceOptions['skip']> = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** @throws Error when the port is taken or a file cannot be read */
export async function runWorker({ count, instance }: { count: number; instance: string }): Promise<void> {
  const config = await receiveConfig();
  const self = cluster.worker?.id ?? 0;
  const metrics = createMetrics();
  const { timeout, queueTimeout } = config.upstream;
  const peers = new PeerLink({
    self,
    askTimeoutMs: queueTimeout + timeout + ASK_SPARE_MS,
    send,
    clock: systemClock,
    lostMaxAgeMs: config.redis.lostMaxAge,
  });
  const logger = createLogger({ level: config.log.level });
  const service = await servePublic(shareOf(config, count), { logger, metrics, peers, instance });
  const grace = createGrace({
    delayMs: config.server.shutdownTimeout + SPARE_MS,
    skip: OF_PRIMARY,
    failed: logUncaught(logger),
    stop: service.stop,
  });
  for (const signal of OF_PRIMARY) process.on(signal, () => undefined);
  process.once('disconnect', () => {
    grace.close();
  });
  const { applyMintedName, apply, load, member, joined } = service.app;
  const reload = (next: Config): void => {
    service.app.reload(shareOf(next, count));
  };
  const stop = (): void => {
    grace.close();
  };
  const call = (message: Extract<Down, { kind: 'call' }>): void => {
    void answerCall(member, message, send);
  };
  process.on('message', (received) => {
    const message = unwrap(received) as Down | undefined;
    if (message !== undefined)
      peers.obey(message, { joined, apply, applyMintedName, load, call, reload, stop });
  });
  send({ kind: 'listening', url: service.url });
  const { readiness } = service.app;
  setInterval(() => {
    send({ kind: 'state', isReady: readiness.report().ready });
    peers.renew();
  }, STATE_EVERY_MS).unref();
}

/** Not read from the file: that may have changed, or be broken, since the primary has read it. */
function receiveConfig(): Promise<Config> {
  return new Promise((resolve) => {
    process.on('message', function receive(received) {
      const message = unwrap(received) as Down | undefined;
      if (message?.kind !== 'config') return;
      process.off('message', receive);
      resolve(message.config);
    });
    send({ kind: 'beginning' });
  });
}

function send(message: Up): void {
  if (process.connected) process.send?.(wrap(message));
}
