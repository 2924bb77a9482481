// Creates what talks to one Handle server and its mirrors: connections, limits, circuit breaker, health.
import { CATALOGUE } from '../errors.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import type { Logger } from '../observe/logger.js';
import type { Metrics } from '../observe/metrics.js';
import type { ServerState } from '../observe/recent.js';
import { type Forward, createForwarder, createLimitedForward } from '../record/forward.js';
import { type UpstreamClient, type UpstreamClientOptions, createUpstreamClient } from '../upstream/client.js';
import {
  type LimiterOptions,
  type LimiterUsage,
  ConcurrencyLimiter,
} from '../upstream/concurrency-limiter.js';
import { type Connections, createConnections } from '../upstream/connections.js';
import { explain } from '../upstream/failure.js';
import { type RecordClient, createRecordClient } from '../upstream/record-client.js';
import type { ServerHealth } from '../upstream/server-health.js';
import type { ServerKeys } from '../upstream/server-keys.js';
import { warnOfIgnoredLogins } from './ignored-login.js';
import { type SharedDeps, readPem } from './shared-deps.js';

export interface HandleServer extends Pick<ServerConfig, 'url' | 'prefixes' | 'readOnly'> {
  /** Reads that callers share. */
  reads: UpstreamClient;
  /** For requests with the credentials of one caller. */
  records: RecordClient;
  forward: Forward;
  /** Whether a read with a wrong login is refused: over plain http it is answered as if it had none. */
  checksLogins: boolean;
  /** Called when a write is refused because its login was ignored; undefined over https. */
  onIgnoredLogin: (() => void) | undefined;
  usage: () => { read: LimiterUsage; passed: LimiterUsage };
  close: Connections['close'];
}

/** The configuration keys of the server at an address. */
type KeysOf = (url: string) => ServerKeys;

export function makeHandleServer(shared: SharedDeps, server: ServerConfig, keysOf: KeysOf): HandleServer {
  const { url, prefixes, readOnly, connections: maxConnections, fingerprint } = server;
  const trust = { ca: readPem(server.caFile), fingerprint };
  const connections = createConnections(
    { url, connections: maxConnections, ...trust },
    shared.createDispatcher,
  );
  const limiter = new ConcurrencyLimiter(limiterOptions(shared, server, 'passed'));
  const onHealth = reportHealth(shared, keysOf);
  const reads = makeReads(shared, server, { onHealth, dispatcher: connections.dispatcher });
  const onIgnoredLogin = warnOfIgnoredLogins(shared, url);
  const forward = createForwarder({
    upstreamUrl: url,
    agent: connections.writeAgent,
    timeoutMs: server.writeTimeoutMs,
    pseudonym: shared.pseudonym,
    withCredentials: !readOnly,
  });
  return {
    url,
    prefixes,
    readOnly,
    reads,
    records: makeRecords(shared, server, { connections, limiter, onIgnoredLogin }),
    forward: createLimitedForward(forward, limiter),
    checksLogins: !readOnly && url.startsWith('https:'),
    onIgnoredLogin,
    usage: () => ({ read: reads.usage(), passed: limiter.usage() }),
    close: connections.close,
  };
}

function makeRecords(
  { config, pseudonym }: SharedDeps,
  { url, readOnly, timeoutMs, writeTimeoutMs, maxBodyBytes, maxRecordBytes }: ServerConfig,
  access: Pick<HandleServer, 'onIgnoredLogin'> & { connections: Connections; limiter: ConcurrencyLimiter },
): RecordClient {
  const { limiter, onIgnoredLogin } = access;
  return createRecordClient({
    url,
    pseudonym,
    withCredentials: !readOnly,
    caseSensitive: config.upstream.caseSensitive,
    limiter,
    dispatcher: access.connections.dispatcher,
    onIgnoredLogin,
    timeoutMs,
    writeTimeoutMs,
    maxBodyBytes,
    maxRecordBytes,
  });
}

/** The concurrency limit for requests of a kind. */
function limiterOptions(
  { metrics }: Pick<SharedDeps, 'metrics'>,
  { url, concurrency, minConcurrency, queue, queueTimeoutMs }: ServerConfig,
  kind: Parameters<Metrics['countRejected']>[0]['kind'],
): LimiterOptions {
  const onRejected = (): void => {
    metrics.countRejected({ server: url, kind });
  };
  // The latency of a write says nothing about how busy the server is, that of a list depends on its client.
  const min = kind === 'read' ? minConcurrency : concurrency;
  return { concurrency, minConcurrency: min, queue, waitMs: queueTimeoutMs, onRejected };
}

function makeReads(
  shared: SharedDeps,
  server: ServerConfig,
  { onHealth, dispatcher }: Pick<UpstreamClientOptions, 'onHealth' | 'dispatcher'>,
): UpstreamClient {
  const { config, pseudonym, now } = shared;
  const { caseSensitive, retryAfterMs, mirrorMaxTtlMs } = config.upstream;
  return createUpstreamClient({
    url: server.url,
    mirrors: server.mirrors,
    timeoutMs: server.timeoutMs,
    failoverAfterMs: server.failoverAfterMs,
    retryAfterMs,
    maxPauseMs: server.maxRestMs,
    mirrorLagMs: mirrorMaxTtlMs,
    limiter: limiterOptions(shared, server, 'read'),
    pseudonym,
    maxRecordBytes: server.maxRecordBytes,
    slicer: shared.slicer,
    caseSensitive,
    dispatcher,
    breaker: makeBreaker(shared, server),
    onHealth,
    onCall: reportCalls(shared),
    now,
  });
}

function makeBreaker(
  { logger, metrics }: SharedDeps,
  { url, mirrors, breaker: { failures, openForMs } }: ServerConfig,
): UpstreamClientOptions['breaker'] {
  for (const server of [url, ...mirrors]) {
    metrics.addServer(server);
    metrics.setBreakerState('closed', server);
  }
  return {
    failures,
    openForMs,
    onStateChange(state, server) {
      metrics.setBreakerState(state, server);
      logger.warn({ breaker: state, server }, 'circuit breaker state changed');
    },
  };
}

function reportHealth(
  { logger, metrics }: SharedDeps,
  keysOf: KeysOf,
): NonNullable<UpstreamClientOptions['onHealth']> {
  return (server, health, failures) => {
    const state = describeHealth(health, keysOf(server));
    metrics.recent.setServerState(server, state);
    logHealth(logger, { server, failures }, state);
  };
}

/** What the metrics, the traces and the status page learn of reads. */
export function reportCalls({ metrics, tracer }: SharedDeps): NonNullable<UpstreamClientOptions['onCall']> {
  return ({ server, result, durationMs }) => {
    metrics.countUpstreamRequest({ server, outcome: result, ms: durationMs });
    tracer?.addCall({ name: 'GET upstream', durationMs, result, isFailure: result in CATALOGUE });
  };
}

function describeHealth(health: ServerHealth, keys: ServerKeys): ServerState {
  if (health.state !== 'failing') return { state: health.state };
  return { state: 'failing', code: health.failure.code, ...explain(health.failure, keys) };
}

function logHealth(logger: Logger, server: object, { state, ...reason }: ServerState): void {
  if (state === 'failing') logger.warn({ ...server, ...reason }, 'server is failing');
  else logger.info(server, 'server is working');
}
