// Creates the client of the upstream and the resolver that uses it.
import type { Cache } from '../cache/cache.js';
import { CATALOGUE } from '../errors.js';
import type { ServerState } from '../observe/activity.js';
import type { Logger } from '../observe/logger.js';
import type { ServerHealth } from '../upstream/server-health.js';
import { recordKey } from '../handle/handle.js';
import { Resolver } from '../resolver/resolver.js';
import { SharedUpstream } from '../resolver/shared-upstream.js';
import { type UpstreamClient, createUpstreamClient } from '../upstream/client.js';
import type { LimiterOptions } from '../upstream/concurrency-limiter.js';
import type { Connections } from '../upstream/connections.js';
import { ExpiringMap } from '../upstream/expiring-map.js';
import type { SharedDeps } from './shared-deps.js';

export function makeUpstream(
  { config, upstreamUrl, pseudonym, now, logger, metrics, activity, tracer }: SharedDeps,
  { dispatcher }: Connections,
): UpstreamClient {
  const { mirrors, timeout, failoverAfter, retryAfter, maxRest, maxBodySize, caseSensitive } =
    config.upstream;
  const { mirrorMaxTtl, breaker } = config.upstream;
  for (const server of [upstreamUrl, ...mirrors]) {
    metrics.setBreakerState('closed', server);
    activity.setBreakerState('closed', server);
  }
  return createUpstreamClient({
    url: upstreamUrl,
    mirrors,
    timeoutMs: timeout,
    failoverAfterMs: failoverAfter,
    retryAfterMs: retryAfter,
    maxPauseMs: maxRest,
    mirrorLagMs: mirrorMaxTtl,
    limiter: limiterOptions({ config, metrics }, 'read'),
    pseudonym,
    maxBodyBytes: maxBodySize,
    caseSensitive,
    dispatcher,
    breaker: {
      failures: breaker.failures,
      openForMs: breaker.openFor,
      onStateChange(state, server) {
        const shown = state === 'open' ? 'open' : 'closed';
        metrics.setBreakerState(shown, server);
        activity.setBreakerState(shown, server);
        if (state === 'open') activity.addError(`circuit breaker open: ${server}`);
        logger.warn({ breaker: state, server }, 'circuit breaker state changed');
      },
    },
    onHealth: (server, health, failures) => {
      activity.setServerState(server, describeHealth(health));
      logHealth(logger, { server, failures }, health);
    },
    onCall: ({ result, durationMs }) => {
      metrics.countUpstreamRequest({ outcome: result, ms: durationMs });
      const isFailure = result in CATALOGUE;
      tracer?.addCall({ name: 'GET upstream', durationMs, result, isFailure });
      activity.countUpstreamRequest({ isFailure, ms: durationMs });
      if (isFailure) activity.addError(`upstream request failed: ${result}`);
    },
    now,
  });
}

function describeHealth(health: ServerHealth): ServerState {
  if (health.state !== 'failing') return { state: health.state };
  const { code, message, diagnosis = { cause: message } } = health.failure;
  return { state: 'failing', code, ...diagnosis };
}

function logHealth(logger: Logger, server: object, health: ServerHealth): void {
  const { state, ...reason } = describeHealth(health);
  if (state === 'failing') logger.warn({ ...server, ...reason }, 'server is failing');
  else logger.info(server, 'server is working');
}

/** The concurrency limit for requests of a kind. */
export function limiterOptions(
  { config, metrics }: Pick<SharedDeps, 'config' | 'metrics'>,
  kind: string,
): LimiterOptions {
  const { concurrency, queue, queueTimeout } = config.upstream;
  const onRejected = (): void => {
    metrics.countRejected(kind);
  };
  return { concurrency, queue, waitMs: queueTimeout, onRejected };
}

/** With several workers, one of them loads each key for all. */
export function shareUpstream(
  { config, peers }: SharedDeps,
  { cache, upstream }: { cache: Cache; upstream: UpstreamClient },
): SharedUpstream {
  return new SharedUpstream({
    upstream,
    mayJoin: () => cache.trustedSince() === 0,
    keyOf: (handle) => recordKey(handle, config.upstream.caseSensitive),
    loadAtOwner: (key, handle) => peers?.loadAtOwner(key, handle) ?? Promise.resolve(undefined),
  });
}

/** A key that is evicted is loaded again. */
const MAX_FAILURES = 100_000;

export function makeResolver(
  shared: SharedDeps,
  { cache, upstream }: { cache: Cache; upstream: SharedUpstream },
): Resolver<unknown> {
  const { config, now } = shared;
  return new Resolver({
    store: cache.store,
    memory: cache.memory,
    trustedSince: cache.trustedSince,
    upstream,
    failures: new ExpiringMap({ ttlMs: config.upstream.retryAfter, maxEntries: MAX_FAILURES, now }),
    // A reload may change the keys under `cache` and `upstream.mirrorMaxTtl`.
    get ttlBounds() {
      return { ...shared.config.cache, mirrorMaxTtl: shared.config.upstream.mirrorMaxTtl };
    },
    get refreshAheadMinHits() {
      return shared.config.cache.refreshAhead.minHits;
    },
    staleAfterMs: config.upstream.staleAfter,
    caseSensitive: config.upstream.caseSensitive,
    now,
  });
}
