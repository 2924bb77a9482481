// What a configuration that was read again changes: some keys at once, the others at the next start.
import { configKeys } from './keys.js';
import type { Config } from './schema.js';
import { valueAt, withValue } from './tree.js';

export interface ReloadPlan {
  /** What is in effect from now on: as before, but for the keys that may change. */
  config: Config;
  changed: string[];
  needRestart: string[];
}

export function planReload(running: Config, next: Config): ReloadPlan {
  const different = configKeys().filter(({ key }) => !isSame(valueAt(running, key), valueAt(next, key)));
  const changed = different.filter(({ isReloadable }) => isReloadable).map(({ key }) => key);
  const config = changed.reduce<unknown>(
    (soFar, key) => withValue(soFar, key.split('.'), valueAt(next, key)),
    running,
  ) as Config;
  const needRestart = different.filter(({ isReloadable }) => !isReloadable).map(({ key }) => key);
  return { config, changed, needRestart };
}

/** Values are texts, numbers, true or false, none, and lists of these. */
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
