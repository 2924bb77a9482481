// Reads the configuration and serves; says on stderr why that is not possible.
import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { ConfigError } from '../config/config-error.js';
import { type ConfigSources, loadConfig, loadShown } from '../config/load.js';
import type { Config } from '../config/schema.js';
import { run, runAsWorker } from './run.js';

/** Exit code for a configuration that cannot be used (BSD and shells use 2 for wrong usage). */
const EXIT_CONFIG = 2;

const SOURCES: ConfigSources = { env: process.env, readFile: (path) => readFileSync(path, 'utf8') };

export async function start(): Promise<void> {
  try {
    if (cluster.isWorker) await runAsWorker();
    else await run(readConfig(), () => loadShown(SOURCES));
  } catch (error) {
    process.stderr.write(
      `The proxy cannot start: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    process.exit(1);
  }
}

function readConfig(): Config {
  try {
    const config = loadConfig(SOURCES);
    if (config.upstream.url !== null) return config;
    return complain(
      'Set UPSTREAM_URL to the address of your Handle server, such as https://handle.example.org:8000',
    );
  } catch (error) {
    if (error instanceof ConfigError) return complain(error.message);
    throw error;
  }
}

function complain(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(EXIT_CONFIG);
}
