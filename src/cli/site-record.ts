// `site-record`: prints the site record of this instance, for a prefix record or as a `resolver_site` file.
import { loadStartConfig } from '../config/load.js';
import { ConfigError } from '../config/config-error.js';
import { processSources } from '../config/process-sources.js';
import type { Config } from '../config/schema.js';
import { encodeSite } from '../handle/site-data.js';
import { EXIT, Failure } from './failure.js';

export interface SiteRecordOptions {
  config?: string;
  /** The index of the value. */
  index: number;
  binary?: boolean;
}

/** @throws Failure when clients could not reach what the record names */
export async function printSiteRecord({ config: file, index, binary }: SiteRecordOptions): Promise<void> {
  const config = load(file);
  const { address, domain } = config.native.site;
  if (address === undefined && domain === undefined) {
    throw new Failure(
      'Set native.site.address or native.site.domain to where clients reach this proxy.',
      EXIT.usage,
    );
  }
  // Imported on demand: the other commands start in half the time without the proxy.
  const { siteRecord } = await import('../native/site-record.js');
  const site = siteRecord(config);
  if (site.servers.every(({ interfaces }) => interfaces.length === 0)) {
    throw new Failure(
      'No native interface is on: set native.udp.port and native.tcp.port, or native.site.interfaces.',
      EXIT.usage,
    );
  }
  if (binary === true) process.stdout.write(encodeSite(site));
  else {
    const value = { index, type: 'HS_SITE', data: { format: 'site', value: site } };
    process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
  }
}

/** @throws Failure when it is invalid */
function load(file: string | undefined): Config {
  try {
    return loadStartConfig(processSources(file)).config;
  } catch (error) {
    if (error instanceof ConfigError) throw new Failure(error.message, EXIT.usage);
    throw error;
  }
}
