// `check-config`: prints the effective configuration and the source of each value.
import { readFileSync } from 'node:fs';
import { ConfigError } from '../config/config-error.js';
import { explainConfig } from '../config/load.js';
import { EXIT, Failure } from './failure.js';

export function checkConfig({ json = false }: { json?: boolean }): void {
  try {
    const rows = explainConfig({ env: process.env, readFile: (path) => readFileSync(path, 'utf8') });
    const lines = rows.map(({ key, shown, source }) => `${key.padEnd(32)} ${shown.padEnd(24)} ${source}`);
    process.stdout.write(json ? `${JSON.stringify(rows, undefined, 2)}\n` : `${lines.join('\n')}\n`);
  } catch (error) {
    if (error instanceof ConfigError) throw new Failure(error.message, EXIT.usage);
    throw error;
  }
}
