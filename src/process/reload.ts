// On SIGHUP: reads the configuration again, applies the keys that may change, and logs the result.
import type { ShownConfig } from '../config/load.js';
import { type ReloadPlan, planReload } from '../config/reload.js';
import type { Config } from '../config/schema.js';
import type { Logger } from '../observe/logger.js';

/** Reads the configuration. @throws ConfigError when it cannot be used */
export type ReadConfig = () => ShownConfig;

export interface ReloadDeps {
  /** The configuration at the start. */
  config: Config;
  logger: Logger;
  /** Puts the changed keys into effect. */
  apply: (config: Config) => void;
}

/** An invalid configuration changes nothing. */
export function createReload({ config, logger, apply }: ReloadDeps): (read: ReadConfig) => void {
  let running = config;
  return function reload(read) {
    let next: ShownConfig;
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
    // Logged at the old or the new level, whichever lets more through.
    const isLogged = logger.isLevelEnabled('info');
    if (isLogged) log();
    // A level set on the admin listener stays unless the key itself has changed.
    if (plan.changed.includes('log.level')) logger.level = plan.config.log.level;
    running = plan.config;
    if (plan.changed.length > 0) apply(running);
    if (!isLogged) log();
  };
}

function logReload({ changed, needRestart }: ReloadPlan, { shown }: ShownConfig, logger: Logger): void {
  const values = changed.map((key): [string, string] => [key, unquote(shown[key] ?? '')]);
  logger.info({ changed: Object.fromEntries(values) }, 'configuration reloaded');
  if (needRestart.length > 0) {
    logger.warn({ keys: needRestart }, 'changed keys need a restart');
  }
}

/** JSON quotes the value again. */
const unquote = (shown: string): string => shown.replace(/^"(.*)"$/s, '$1');
