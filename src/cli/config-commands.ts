// The commands `check-config`, which probes too, and `site-record`.
import { loadStartConfig } from '../app/config.js';
import { ConfigError, type StartConfig, processSources } from '../config/load.js';
import type { Config } from '../config/schema.js';
import { encodeSite } from '../handle/value-data.js';
import type { Probe } from '../app/probes.js';
import { printableText } from '../handle/handle.js';
import { EXIT, Failure, countText, print, printSection } from './terminal.js';

interface ConfigOption {
  /** Configuration file; takes precedence over CONFIG. */
  config?: string;
}

/** @throws Failure for an invalid configuration */
function load({ config: file }: ConfigOption): ReturnType<typeof loadStartConfig> {
  try {
    return loadStartConfig(processSources(file));
  } catch (error) {
    if (error instanceof ConfigError) throw new Failure(error.message, EXIT.usage);
    throw error;
  }
}

const printJson = (value: object): boolean => print(JSON.stringify(value, undefined, 2));

interface CheckConfigOptions extends ConfigOption {
  /** Whether to print also the keys that have their default; JSON contains all keys. */
  all?: boolean;
  json?: boolean;
  probe?: boolean;
}

/** @throws Failure for an invalid configuration, an unknown variable, or a failed probe */
export async function checkConfig(options: CheckConfigOptions): Promise<void> {
  const { all = false, json = false, probe = false } = options;
  const { config, keys, ignored } = load(options);
  if (ignored.length > 0) throw new Failure(new ConfigError(ignored).message, EXIT.usage);
  if (!json) print(keysText(keys, all));
  else if (!probe) printJson(keys);
  if (!probe) return;
  const probes = await probeServers(config);
  if (json) printJson({ keys, probes });
  else print(`\n${probes.map(probeText).join('\n\n')}`);
  const failed = probes.filter(({ failure }) => failure !== undefined).length;
  if (failed > 0) throw new Failure(`${failed} of ${probes.length} servers failed the probe.`);
}

function keysText(keys: StartConfig['keys'], all: boolean): string {
  const set = keys.filter(({ source }) => source !== 'default');
  const rest = countText(keys.length - set.length, 'key');
  const result = `The configuration is valid; ${rest} with the default${all ? '' : ' (--all prints them)'}.`;
  const lines = (all ? keys : set).map(
    ({ key, shown, source }) => `${key.padEnd(32)} ${shown.padEnd(24)} ${source}`,
  );
  return [...lines, '', result].join('\n');
}

type ProbeResult = { target: Probe['target']; server: string } & Awaited<ReturnType<Probe['run']>>;

async function probeServers(config: Config): Promise<ProbeResult[]> {
  // Imported on demand, because the import slows down startup.
  const { createProbes } = await import('../app/probes.js');
  const asking = { signal: new AbortController().signal, onAnswered: () => undefined };
  const probes = await createProbes(config);
  return Promise.all(
    probes.map(async ({ target, server, run }) => ({ target, server, ...(await run(asking)) })),
  );
}

const TARGETS: Record<ProbeResult['target'], string> = {
  upstream: 'Handle server',
  secondary: 'Secondary',
  redis: 'Redis',
  'reverse lookup': 'Reverse lookup',
};

function probeText({ target, server, ms, version, certificate, failure, warning }: ProbeResult): string {
  const safe = (text: string | undefined): string | undefined => text && printableText(text);
  return printSection(`${TARGETS[target]} (${server})`, [
    ['Probe', failure === undefined ? `succeeded in ${ms} ms` : `failed after ${ms} ms (${failure.code})`],
    ['Warning', safe(warning?.cause)],
    ['Cause', safe(failure?.cause)],
    ['Remedy', safe((failure ?? warning)?.remedy)],
    ['Version', safe(version)],
    ['Certificate', certificate && `SHA-256 ${certificate.fingerprint}`],
    ['Expires', safe(certificate?.expires)],
    ['To pin it', pinLine(certificate, failure)],
  ]);
}

/** Returns the variable that pins the certificate, if the probe failed because it is not trusted. */
const pinLine = (
  certificate: ProbeResult['certificate'],
  failure: ProbeResult['failure'],
): string | undefined =>
  certificate !== undefined && failure?.remedy?.includes('upstream.fingerprint') === true
    ? `UPSTREAM_FINGERPRINT=${certificate.fingerprint}`
    : undefined;

interface SiteRecordOptions extends ConfigOption {
  /** Index of the HS_SITE value in the prefix record. */
  index: number;
  caching?: boolean;
  binary?: boolean;
}

/**
 * Prints this instance's site record, as a value that makes it a second site, or as a file that makes it the only one
 * of its clients. @throws Failure if the site has no public address or no native interface
 */
export async function printSiteRecord({
  index,
  binary = false,
  caching = binary,
  ...option
}: SiteRecordOptions): Promise<void> {
  const { config } = load(option);
  const { address, domain } = config.native.site;
  if (address === undefined && domain === undefined) {
    throw new Failure(
      'Set native.site.address or native.site.domain to where clients reach this proxy.',
      EXIT.usage,
    );
  }
  // Imported on demand, because the import slows down `check-config`.
  const { siteRecord } = await import('../plugins/native/site-record.js');
  const site = siteRecord(config, { isPrimary: caching });
  if (site.servers.every(({ interfaces }) => interfaces.length === 0)) {
    throw new Failure(
      'No native interface is on: set native.udp.port and native.tcp.port, or native.site.interfaces.',
      EXIT.usage,
    );
  }
  if (binary) process.stdout.write(encodeSite(site));
  else if (caching) printJson(site);
  else printJson({ index, type: 'HS_SITE', data: { format: 'site', value: site } });
}
