// `check-config`: prints the effective configuration and the source of each value.
import { ConfigError } from '../config/config-error.js';
import { loadStartConfig } from '../config/load.js';
import { processSources } from '../config/process-sources.js';
import { EXIT, Failure } from './failure.js';

export interface CheckConfigOptions {
  /** The configuration file, instead of the one that CONFIG names. */
  config?: string;
  json?: boolean;
}

export function checkConfig({ json = false, config: file }: CheckConfigOptions): void {
  try {
    const { keys } = loadStartConfig(processSources(file));
    const lines = keys.map(({ key, shown, source }) => `${key.padEnd(32)} ${shown.padEnd(24)} ${source}`);
    process.stdout.write(json ? `${JSON.stringify(keys, undefined, 2)}\n` : `${lines.join('\n')}\n`);
  } catch (error) {
    if (error instanceof ConfigError) throw new Failure(error.message, EXIT.usage);
    throw error;
  }
}
