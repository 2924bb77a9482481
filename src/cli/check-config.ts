// `check-config`: prints the effective configuration and the source of each value; tries the servers on request.
import { ConfigError } from '../config/config-error.js';
import { type StartConfig, loadStartConfig } from '../config/load.js';
import { processSources } from '../config/process-sources.js';
import type { Config } from '../config/schema.js';
import { EXIT, Failure } from './failure.js';
import { type ProbeResult, probeText } from './probe-text.js';

export interface CheckConfigOptions {
  /** The configuration file, instead of the one that CONFIG names. */
  config?: string;
  json?: boolean;
  /** Try every server once. */
  probe?: boolean;
}

/** @throws Failure when the configuration is invalid, or when a server fails the probe */
export async function checkConfig({ json = false, config: file, probe }: CheckConfigOptions): Promise<void> {
  const { config, keys } = load(file);
  if (!json) print(keys.map(keyLine).join('\n'));
  else if (!probe) printJson(keys);
  if (!probe) return;
  const probes = await probeServers(config);
  if (json) printJson({ keys, probes });
  else print(`\n${probeText(probes)}`);
  const failed = probes.filter(({ failure }) => failure !== undefined).length;
  if (failed > 0) throw new Failure(`${failed} of ${probes.length} servers failed the probe.`);
}

/** @throws Failure when it is invalid */
function load(file: string | undefined): StartConfig {
  try {
    return loadStartConfig(processSources(file));
  } catch (error) {
    if (error instanceof ConfigError) throw new Failure(error.message, EXIT.usage);
    throw error;
  }
}

async function probeServers(config: Config): Promise<ProbeResult[]> {
  // Imported on demand: without it the command starts in half the time.
  const { createProbes } = await import('../process/probes.js');
  const { signal } = new AbortController();
  return Promise.all(
    createProbes(config).map(async ({ target, server, run }) => ({
      target,
      server,
      ...(await run(signal)),
    })),
  );
}

const keyLine = ({ key, shown, source }: StartConfig['keys'][number]): string =>
  `${key.padEnd(32)} ${shown.padEnd(24)} ${source}`;

const print = (text: string): boolean => process.stdout.write(`${text}\n`);

const printJson = (value: object): boolean => print(JSON.stringify(value, undefined, 2));
