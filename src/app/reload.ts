// Reloads the configuration on SIGHUP: applies the keys that may change, and logs the result.
import { configKeys } from './config.js';
import { valueAt, withValue } from '../config/keys.js';
import type { ExplainedKey, StartConfig } from '../config/load.js';
import type { Config } from '../config/schema.js';
import type { Logger } from '../observe/logger.js';
import { PLUGINS } from './plugins.js';

/** Reads the configuration. @throws ConfigError when it is invalid */
export type ReadConfig = () => StartConfig;

interface ReloadDeps {
  /** The initial configuration. */
  config: Config;
  logger: Logger;
  /** Applies the changed keys. */
  apply: (config: Config) => void;
}

/** Creates the reload function, which keeps the running configuration if the new one is invalid. */
export function createReload({ config, logger, apply }: ReloadDeps): (read: ReadConfig) => void {
  let running = config;
  return function reload(read) {
    let next: StartConfig;
    try {
      next = read();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error({ reason }, 'reload failed, keeping the current configuration');
      return;
    }
    const plan = planReload(running, next.config);
    const log = (): void => {
      logReload(plan, next, logger);
    };
    // The reload is logged at the more verbose of the old and new levels.
    const isLogged = logger.isLevelEnabled('info');
    if (isLogged) log();
    running = plan.config;
    if (plan.changed.length > 0 || PLUGINS.some((each) => each.reloadsFile?.(plan.config))) apply(running);
    if (!isLogged) log();
  };
}

function logReload({ changed, needRestart }: ReloadPlan, { keys }: StartConfig, logger: Logger): void {
  const values = keys.filter(({ key }) => changed.includes(key)).map(shownValue);
  logger.info({ changed: Object.fromEntries(values) }, 'configuration reloaded');
  if (needRestart.length > 0) {
    logger.warn({ keys: needRestart }, 'changed keys need a restart');
  }
}

/** Returns a key and its value without quotes, because the logger quotes it again. */
const shownValue = ({ key, shown }: ExplainedKey): [string, string] => [
  key,
  shown.replace(/^"(.*)"$/s, '$1'),
];

/** The changed keys, applied now or at the next start. */
interface ReloadPlan {
  /** The running configuration with the new values of all reloadable keys. */
  config: Config;
  changed: string[];
  needRestart: string[];
}

export function planReload(running: Config, next: Config): ReloadPlan {
  const different = configKeys().filter(
    ({ parsedPath }) => !isSame(valueAt(running, parsedPath), valueAt(next, parsedPath)),
  );
  const changed = different.filter(({ isReloadable }) => isReloadable);
  const needRestart = different.filter(({ isReloadable }) => !isReloadable).map(({ key }) => key);
  const config = changed.reduce<unknown>(
    (soFar, { parsedPath }) => withValue(soFar, parsedPath, valueAt(next, parsedPath)),
    running,
  ) as Config;
  return { config, changed: changed.map(({ key }) => key), needRestart };
}

/** Whether two values are equal. Values are JSON. */
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
