// Creates the resolver from the configuration, and follows what a reload changes in it.
import type { Cache } from '../cache/cache.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import type { LimitMiss } from '../upstream/caller.js';
import type { UpstreamClient } from '../upstream/client.js';
import { ExpiringMap } from '../upstream/expiring-map.js';
import { type FindServers, createPrefixRouting } from '../upstream/routing.js';
import { Resolver } from './resolver.js';

type ResolverSettings = Pick<Config, 'cache' | 'upstream'>;
type PrefixPeriods = Config['cache']['staleIfError'];

interface ResolverParts {
  cache: Pick<Cache, 'store' | 'memory' | 'trustedSince'>;
  upstream: UpstreamClient;
  limitMiss: LimitMiss;
}

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

/** `settings` is called anew for what a reload may change: the keys under `cache` and `upstream.mirrorMaxTtl`. */
export function createResolver(
  settings: () => ResolverSettings,
  { clock: { now } }: Context,
  { cache, upstream, limitMiss }: ResolverParts,
): Resolver<unknown> {
  const { retryAfterMs, staleAfterMs, caseSensitive } = settings().upstream;
  return new Resolver({
    store: cache.store,
    memory: cache.memory,
    trustedSince: cache.trustedSince,
    upstream,
    failures: new ExpiringMap({ ttlMs: retryAfterMs, maxEntries: MAX_FAILURES, now }),
    ttlBoundsOf(key) {
      const { found, notFound, staleIfError } = settings().cache;
      const { mirrorMaxTtlMs } = settings().upstream;
      return { found, notFound, staleIfErrorMs: staleMsOf(staleIfError, key), mirrorMaxTtlMs };
    },
    get refreshAheadMinHits() {
      return settings().cache.refreshAhead.minHits;
    },
    staleAfterMs,
    caseSensitive,
    limitMiss,
    now,
  });
}
