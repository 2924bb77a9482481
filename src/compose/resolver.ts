// Makes the client of the upstream and the resolver that uses it.
import type { Cache } from '../cache/cache.js';
import { Resting } from '../cache/failure-cache.js';
import { CATALOGUE } from '../errors.js';
import { recordKey } from '../handle/handle.js';
import { Resolver } from '../resolver/resolver.js';
import { SharedUpstream } from '../resolver/shared-upstream.js';
import type { Agents } from '../upstream/agent.js';
import { type UpstreamClient, createUpstreamClient } from '../upstream/client.js';
import type { GateOptions } from '../upstream/concurrency-limiter.js';
import type { Parts } from './parts.js';

export function makeUpstream(
  { config, upstreamUrl, pseudonym, now, logger, metrics, activity, tracer }: Parts,
  agents: Agents,
): UpstreamClient {
  const { timeout, failoverAfter, retryAfter, maxRest, maxBodySize, caseSensitive, mirrorMaxTtl, breaker } =
    config.upstream;
  const mirrors = config.upstream.mirrors ?? [];
  for (const server of [upstreamUrl, ...mirrors]) {
    metrics.breakerIs('closed', server);
    activity.breakerIs('closed', server);
  }
  return createUpstreamClient({
    url: upstreamUrl,
    mirrors,
    timeoutMs: timeout,
    failoverAfterMs: failoverAfter,
    retryAfterMs: retryAfter,
    maxRestMs: maxRest,
    mirrorLagMs: mirrorMaxTtl,
    gate: gateOptions({ config, metrics }, 'read'),
    pseudonym,
    maxBodyBytes: maxBodySize,
    caseSensitive,
    reads: agents.reads,
    breaker: {
      failures: breaker.failures,
      openForMs: breaker.openFor,
      onBreaker(state, server) {
        const shown = state === 'open' ? 'open' : 'closed';
        metrics.breakerIs(shown, server);
        activity.breakerIs(shown, server);
        if (state === 'open') activity.failed(`${server} failed repeatedly: its breaker is open`);
        logger.warn({ breaker: state, server }, `upstream breaker is ${state}`);
      },
    },
    onAnswer: ({ result, durationMs }) => {
      metrics.upstreamAnswered({ outcome: result, ms: durationMs });
      const isFailure = result in CATALOGUE;
      tracer?.called({ name: 'read at the Handle server', durationMs, result, isFailure });
      if (result === 'aborted') return;
      activity.upstreamAnswered({ isFailure, ms: durationMs });
      if (isFailure) activity.failed(`the upstream did not answer: ${result}`);
    },
    now,
  });
}

/** How many requests of a kind the upstream gets at a time. */
export function gateOptions(
  { config, metrics }: Pick<Parts, 'config' | 'metrics'>,
  kind: string,
): GateOptions {
  const { concurrency, queue, queueTimeout } = config.upstream;
  const onTurnedAway = (): void => {
    metrics.turnedAway(kind);
  };
  return { concurrency, queue, waitMs: queueTimeout, onTurnedAway };
}

/** With other workers on the machine, one of them asks for each key. */
export function shareUpstream(
  { config, peers }: Parts,
  { cache, upstream }: { cache: Cache; upstream: UpstreamClient },
): SharedUpstream {
  return new SharedUpstream({
    upstream,
    mayJoin: () => cache.trustedSince() === 0,
    keyOf: (handle) => recordKey(handle, config.upstream.caseSensitive),
    askPeer: (key, handle) => peers?.loadAtOwner(key, handle) ?? Promise.resolve(undefined),
  });
}

export function makeResolver(
  parts: Parts,
  { cache, upstream }: { cache: Cache; upstream: SharedUpstream },
): Resolver<unknown> {
  const { config, now } = parts;
  return new Resolver({
    store: cache.store,
    memory: cache.memory,
    trustedSince: cache.trustedSince,
    upstream,
    resting: new Resting(config.upstream.retryAfter, now),
    // A reload may change these two.
    get lifetimes() {
      return { ...parts.config.cache, mirrorMaxTtl: parts.config.upstream.mirrorMaxTtl };
    },
    get refreshAheadMinHits() {
      return parts.config.cache.refreshAhead.minHits;
    },
    staleAfterMs: config.upstream.staleAfter,
    caseSensitive: config.upstream.caseSensitive,
    now,
  });
}
