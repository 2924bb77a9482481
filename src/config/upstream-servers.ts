// The Handle servers behind this proxy: the one of `upstream`, or those of the list `upstreams`.
import type { z } from 'zod';
import { NO_SERVER, type upstream, type upstreams } from './schema-upstream.js';

/** One Handle server with its prefixes (`21.T1`, `21.T1.*` or `*`, in capitals), limits and times. */
export type ServerConfig = z.output<typeof upstreams>[number];

/** A server as it is used, and where it is configured. */
export interface ConfiguredServer extends ServerConfig {
  /** `upstream`, or `upstreams.0` and so on. */
  key: string;
}

/** The two sections of the configuration that name servers. */
export interface UpstreamSections {
  upstream: z.output<typeof upstream>;
  upstreams: ServerConfig[];
}

/** False when the configuration names neither a server nor that there is none. */
export const isUpstreamGiven = (config: UpstreamSections): boolean =>
  config.upstream.url === NO_SERVER || upstreamServers(config).length > 0;

/** Empty when there is no server. */
export function upstreamServers({ upstream, upstreams }: UpstreamSections): ConfiguredServer[] {
  const { url } = upstream;
  if (url === NO_SERVER) return [];
  if (url !== undefined) return [{ ...upstream, url, key: 'upstream', prefixes: ['*'], readOnly: false }];
  return upstreams.map((server, at) => ({ ...server, key: `upstreams.${at}` }));
}

/** The longest time from a write's arrival to its time-out at any of these servers. */
export const maxWriteMs = (
  servers: readonly Pick<ServerConfig, 'queueTimeoutMs' | 'writeTimeoutMs'>[],
): number =>
  Math.max(0, ...servers.map(({ queueTimeoutMs, writeTimeoutMs }) => queueTimeoutMs + writeTimeoutMs));

/** Identifies what is behind the proxy: instances with the same text may share a cache. */
export function describeServers(servers: readonly Pick<ServerConfig, 'url' | 'prefixes'>[]): string {
  const [first, ...others] = servers;
  if (others.length === 0) return first?.url ?? '';
  return servers
    .map(({ prefixes, url }) => `${[...prefixes].sort().join(',')}=${url}`)
    .sort()
    .join(' ');
}
