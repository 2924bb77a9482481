// Creates the resolver, and the budget of prepared answers.
import type { Cache } from '../cache/cache.js';
import { PreparedBudget, type PreparedDeps } from '../cache/prepared-cache.js';
import { Resolver } from '../resolver/resolver.js';
import type { LimitMiss } from '../upstream/caller.js';
import type { UpstreamClient } from '../upstream/client.js';
import { ExpiringMap } from '../upstream/expiring-map.js';
import { type FindServers, createPrefixRouting } from '../upstream/prefix-routing.js';
import type { SharedDeps } from './shared-deps.js';

type PrefixPeriods = SharedDeps['config']['cache']['staleIfError'];

/** Replaced with the configuration by a reload. */
const routings = new WeakMap<PrefixPeriods, FindServers<PrefixPeriods[number]>>();

/** The period of the longest matching prefix, by the rules of `upstreams`. */
export function staleMsOf(periods: PrefixPeriods, key: string): number {
  const find = routings.get(periods) ?? createPrefixRouting(periods);
  routings.set(periods, find);
  return find(key)[0]?.ms ?? 0;
}

/** A key that is evicted is loaded again. */
const MAX_FAILURES = 100_000;

export function makeResolver(
  shared: SharedDeps,
  { cache, upstream, limitMiss }: { cache: Cache; upstream: UpstreamClient; limitMiss: LimitMiss },
): Resolver<unknown> {
  const { config, now } = shared;
  return new Resolver({
    store: cache.store,
    memory: cache.memory,
    trustedSince: cache.trustedSince,
    upstream,
    failures: new ExpiringMap({ ttlMs: config.upstream.retryAfterMs, maxEntries: MAX_FAILURES, now }),
    // A reload may change the keys under `cache` and `upstream.mirrorMaxTtl`.
    ttlBoundsOf(key) {
      const { found, notFound, staleIfError } = shared.config.cache;
      const { mirrorMaxTtlMs } = shared.config.upstream;
      return { found, notFound, staleIfErrorMs: staleMsOf(staleIfError, key), mirrorMaxTtlMs };
    },
    get refreshAheadMinHits() {
      return shared.config.cache.refreshAhead.minHits;
    },
    staleAfterMs: config.upstream.staleAfterMs,
    caseSensitive: config.upstream.caseSensitive,
    limitMiss,
    now,
  });
}

/** For all caches of prepared answers. */
export function makePreparing(
  { config }: SharedDeps,
  { resolver, cache }: { resolver: Resolver<unknown>; cache: Cache },
): PreparedDeps {
  const { enabled, maxEntries, maxBytes } = config.http.hotPath;
  return {
    budget: new PreparedBudget({ maxEntries: enabled ? maxEntries : 0, maxBytes }),
    memory: cache.memory,
    keyOf: (handle) => resolver.keyOf(handle),
    trustedSince: cache.trustedSince,
  };
}
