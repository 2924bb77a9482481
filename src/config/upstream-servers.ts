// The Handle servers behind this proxy, from `upstream` or from the list `upstreams`.
import type { z } from 'zod';
import { NO_SERVER, type upstream, type upstreams } from './schema-upstream.js';

/** One Handle server with its prefixes (`21.T1`, `21.T1.*` or `*`, in capitals), limits and times. */
export type ServerConfig = z.output<typeof upstreams>[number];

/** A server with the key of its section. */
export interface ConfiguredServer extends ServerConfig {
  /** Key of the section: `upstream`, or `upstreams.0` and so on. */
  key: string;
}

/** The two sections of the configuration that name servers. */
export interface UpstreamSections {
  upstream: z.output<typeof upstream>;
  upstreams: ServerConfig[];
}

/** False when the configuration has neither a server nor `upstream.url: none`. */
export const isUpstreamGiven = (config: UpstreamSections): boolean =>
  config.upstream.url === NO_SERVER || upstreamServers(config).length > 0;

/** The configured servers; empty for `upstream.url: none`. */
export function upstreamServers({ upstream, upstreams }: UpstreamSections): ConfiguredServer[] {
  const { url } = upstream;
  if (url === NO_SERVER) return [];
  if (url !== undefined) return [{ ...upstream, url, key: 'upstream', prefixes: ['*'], readOnly: false }];
  return upstreams.map((server, at) => ({ ...server, key: `upstreams.${at}` }));
}

/** Maximum milliseconds that a write takes at any of these servers: in the queue, then until its timeout. */
export const maxWriteMs = (
  servers: readonly Pick<ServerConfig, 'queueTimeoutMs' | 'writeTimeoutMs'>[],
): number =>
  Math.max(0, ...servers.map(({ queueTimeoutMs, writeTimeoutMs }) => queueTimeoutMs + writeTimeoutMs));

/** Identifies the servers behind the proxy: instances with the same text may share a cache. */
export function describeServers(servers: readonly Pick<ServerConfig, 'url' | 'prefixes'>[]): string {
  const [first, ...others] = servers;
  if (others.length === 0) return first?.url ?? '';
  return servers
    .map(({ prefixes, url }) => `${[...prefixes].sort().join(',')}=${url}`)
    .sort()
    .join(' ');
}
