// The sources of the configuration of this process: its environment and the file system.
import { readFileSync } from 'node:fs';
import type { ConfigSources } from './load.js';

/** `file` takes precedence over the variable `CONFIG`. */
export const processSources = (file?: string): ConfigSources => ({
  env: { ...process.env, ...(file !== undefined && { CONFIG: file }) },
  readFile: (path) => readFileSync(path, 'utf8'),
});
