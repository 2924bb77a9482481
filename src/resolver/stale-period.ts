// How long a key may be served stale: `cache.staleIfError` by prefix, and the periods of plugins.
import type { Live } from '../config/live.js';
import type { Config } from '../config/schema.js';
import { refOfKey } from '../handle/handle.js';
import type { Hooks } from '../hooks.js';
import { createPrefixRouting } from '../upstream/routing.js';

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
