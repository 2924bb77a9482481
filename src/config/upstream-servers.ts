// Lists the configured Handle servers, from `upstream` or `upstreams`.
import type { z } from 'zod';
import { NO_SERVER, type upstream, type upstreams } from './schema-upstream.js';

/** A Handle server with its prefixes (`21.T1`, `21.T1.*` or `*`, in upper case), limits and timeouts. */
export type ServerConfig = z.output<typeof upstreams>[number];

/** A server and its section key. */
export interface ConfiguredServer extends ServerConfig {
  /** Section key: `upstream`, or `upstreams.0` and so on. */
  key: string;
}

/** The configuration sections that name servers. */
export interface UpstreamSections {
  upstream: z.output<typeof upstream>;
  upstreams: ServerConfig[];
}

/** Whether the configuration has a server or `upstream.url: none`. */
export const isUpstreamGiven = (config: UpstreamSections): boolean =>
  config.upstream.url === NO_SERVER || upstreamServers(config).length > 0;

/** Returns the configured servers, or none for `upstream.url: none`. */
export function upstreamServers({ upstream, upstreams }: UpstreamSections): ConfiguredServer[] {
  const { url } = upstream;
  if (url === NO_SERVER) return [];
  if (url !== undefined) return [{ ...upstream, url, key: 'upstream', prefixes: ['*'], readOnly: false }];
  return upstreams.map((server, at) => ({ ...server, key: `upstreams.${at}` }));
}

/** Returns the maximum write duration (ms) at any of these servers, including the queue. */
export const maxWriteMs = (
  servers: readonly Pick<ServerConfig, 'queueTimeoutMs' | 'writeTimeoutMs'>[],
): number =>
  Math.max(0, ...servers.map(({ queueTimeoutMs, writeTimeoutMs }) => queueTimeoutMs + writeTimeoutMs));

/** Returns an identifier of the upstream servers. Instances with equal identifiers may share a cache. */
export function describeServers(servers: readonly Pick<ServerConfig, 'url' | 'prefixes'>[]): string {
  const [first, ...others] = servers;
  if (others.length === 0) return first?.url ?? '';
  return servers
    .map(({ prefixes, url }) => `${[...prefixes].sort().join(',')}=${url}`)
    .sort()
    .join(' ');
}
