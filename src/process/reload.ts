// On SIGHUP: reads the configuration again, has what may change changed, and says what came of it.
import type { ShownConfig } from '../config/load.js';
import { type ReloadPlan, planReload } from '../config/reload.js';
import type { Config } from '../config/schema.js';
import type { Logger } from '../observe/logger.js';

/** Reads the configuration. @throws ConfigError when it cannot be used */
export type ReadAgain = () => ShownConfig;

export interface ReloadDeps {
  /** In effect at the start. */
  config: Config;
  logger: Logger;
  /** Brings what is different into effect. */
  apply: (config: Config) => void;
}

/** A configuration that cannot be used changes nothing. */
export function createReload({ config, logger, apply }: ReloadDeps): (read: ReadAgain) => void {
  let running = config;
  return function reload(read) {
    let next: ShownConfig;
    try {
      next = read();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error({ reason }, 'the configuration cannot be used: nothing changes');
      return;
    }
    const plan = planReload(running, next.config);
    const tell = (): void => {
      tellOf(plan, next, logger);
    };
    // Told at whichever level lets more through.
    const isHeard = logger.isLevelEnabled('info');
    if (isHeard) tell();
    // It may have been changed by hand meanwhile, and stays so unless the key itself is another.
    if (plan.changed.includes('log.level')) logger.level = plan.config.log.level;
    running = plan.config;
    if (plan.changed.length > 0) apply(running);
    if (!isHeard) tell();
  };
}

function tellOf({ changed, needRestart }: ReloadPlan, { shown }: ShownConfig, logger: Logger): void {
  const values = changed.map((key): [string, string] => [key, unquote(shown[key] ?? '')]);
  logger.info({ changed: Object.fromEntries(values) }, 'the configuration was read again');
  if (needRestart.length > 0) {
    logger.warn({ keys: needRestart }, 'these keys change at the next start only');
  }
}

/** The log has quotes of its own. */
const unquote = (shown: string): string => shown.replace(/^"(.*)"$/s, '$1');
