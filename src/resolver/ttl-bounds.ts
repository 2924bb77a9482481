// The TTL bounds of a key: those of `cache`, some of which depend on its prefix, and those that plugins add.
import type { TtlBounds } from '../cache/policy.js';
import type { Config, Live } from '../config/schema.js';
import { refOfKey } from '../handle/handle.js';
import type { Hooks } from '../hooks.js';
import { createPrefixRouting } from '../upstream/routing.js';

/** Creates the function that returns the TTL bounds of a key. `staleIfErrorMs`: see `createStalePeriod`. */
export function createTtlBounds(
  settings: Live<Config>,
  { notFoundTtlMs }: Hooks,
  staleIfErrorMs: (key: string) => number,
): (key: string) => TtlBounds {
  const { secondaryMaxTtlMs } = settings.current.upstream;
  return function ttlBoundsOf(key) {
    const { found, notFound } = settings.current.cache;
    const ttlMs =
      notFound.ttlMs === 0 ? 0 : Math.max(notFound.ttlMs, ...notFoundTtlMs.map((ttlMsOf) => ttlMsOf(key)));
    return { found, notFound: { ttlMs }, staleIfErrorMs: staleIfErrorMs(key), secondaryMaxTtlMs };
  };
}

/**
 * Creates a lookup of `cache.staleIfError` (ms) by the longest matching prefix of a key, 0 without a match. The prefixes
 * of plugins, which add theirs later, take precedence.
 */
export function createStalePeriod(
  settings: Live<Config>,
  { stalePeriod: ofPlugins }: Hooks,
): (key: string) => number {
  let find: ((key: string) => number) | undefined;
  settings.onReload(() => {
    find = undefined;
  });
  return function staleIfErrorMs(key) {
    find ??= createFindPeriod([...ofPlugins, ...settings.current.cache.staleIfError]);
    return find(key);
  };
}

function createFindPeriod(periods: Readonly<Hooks['stalePeriod']>): (key: string) => number {
  const [only, ...others] = periods;
  if (only?.prefixes.includes('*') && others.length === 0) return () => only.ms;
  const find = createPrefixRouting(periods);
  return (key) => find(refOfKey(key))[0]?.ms ?? 0;
}
