// Compares a reloaded configuration with the running one: keys applied at once and keys that need a restart.
import { configKeys, valueAt, withValue } from './keys.js';
import type { Config } from './schema.js';

export interface ReloadPlan {
  /** The running configuration with the new values of reloadable keys. */
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

/** Values are strings, numbers, booleans, null and lists of these. */
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
