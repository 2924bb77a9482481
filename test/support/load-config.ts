// Loads a configuration from text and variables, as main.ts does from a file and the environment.
import { loadConfig } from '../../src/app/config.js';
import { ConfigError } from '../../src/config/load.js';
import type { PluginSettings } from '../../src/app/plugins.js';
import { withFixed } from './fixed.js';

export interface GivenConfig {
  env?: Record<string, string | undefined>;
  yaml?: string;
}

export function configFrom({ env = {}, yaml }: GivenConfig): PluginSettings {
  const named = yaml === undefined ? env : { CONFIG: '/etc/proxy.yaml', ...env };
  const config = loadConfig({ env: named, readFile: () => yaml ?? '' }) as PluginSettings;
  return withFixed(config, env);
}

/** Returns the lines of the configuration error, without its heading. */
export function problemsFrom(given: GivenConfig): string[] {
  try {
    configFrom(given);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n').slice(1);
    throw error;
  }
  return [];
}
