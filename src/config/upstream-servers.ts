// The servers behind this proxy, from `upstream` or from the list `upstreams`.
import type { z } from 'zod';
import { NO_SERVER, type upstream, type upstreams } from './schema-upstream.js';

type ListedServer = z.output<typeof upstreams>[number];

/** One server with its prefixes (`21.T1`, `21.T1.*` or `*`, in capitals), limits and times. */
export interface ServerConfig extends Omit<ListedServer, 'kind' | 'url'> {
  kind: Exclude<ListedServer['kind'], 'none'>;
  url: string;
  /** Whether it mints its handles itself: it has no writes and no logins, and compares suffixes exactly. */
  isRepository: boolean;
}

/** A server with the key of its section. */
export interface ConfiguredServer extends ServerConfig {
  /** Key of the section: `upstream`, or `upstreams.0` and so on. */
  key: string;
}

/** The two sections of the configuration that name servers. */
export interface UpstreamSections {
  upstream: z.output<typeof upstream>;
  upstreams: ListedServer[];
}

/** False when the configuration has neither a server nor `upstream.url: none`. */
export const isUpstreamGiven = ({ upstream, upstreams }: UpstreamSections): boolean =>
  upstream.url !== undefined || upstreams.length > 0;

const HANDLE_SERVER = {
  kind: 'handle-server',
  existenceCheck: false,
  isRepository: false,
  readOnly: false,
} as const;

/** The configured servers; empty for `upstream.url: none`. */
export function upstreamServers({ upstream, upstreams }: UpstreamSections): ConfiguredServer[] {
  const { url } = upstream;
  if (url === NO_SERVER) return [];
  if (url !== undefined) {
    return [{ ...upstream, ...HANDLE_SERVER, prefixes: ['*'], url, key: 'upstream' }];
  }
  return upstreams.flatMap(({ kind, url: listed, ...server }, at) => {
    if (kind === 'none' || listed === undefined) return [];
    const isRepository = kind !== 'handle-server';
    const readOnly = server.readOnly || isRepository;
    return [{ ...server, kind, url: listed, isRepository, readOnly, key: `upstreams.${at}` }];
  });
}

/** The prefixes of `upstreams` without a server: their records come from a seed, a snapshot or an import. */
export const unservedPrefixes = ({ upstreams }: Pick<UpstreamSections, 'upstreams'>): string[] =>
  upstreams.flatMap(({ kind, prefixes }) => (kind === 'none' ? prefixes : []));

/** Maximum milliseconds that a write takes at any of these servers: in the queue, then until its timeout. */
export const maxWriteMs = (
  servers: readonly Pick<ServerConfig, 'queueTimeoutMs' | 'writeTimeoutMs'>[],
): number =>
  Math.max(0, ...servers.map(({ queueTimeoutMs, writeTimeoutMs }) => queueTimeoutMs + writeTimeoutMs));

/** Identifies the servers behind the proxy: instances with the same text may share a cache. */
export function describeServers(servers: readonly Pick<ServerConfig, 'kind' | 'url' | 'prefixes'>[]): string {
  const [first, ...others] = servers;
  if (first === undefined) return '';
  if (others.length === 0) return describeServer(first);
  return servers
    .map((server) => `${[...server.prefixes].sort().join(',')}=${describeServer(server)}`)
    .sort()
    .join(' ');
}

const describeServer = ({ kind, url }: Pick<ServerConfig, 'kind' | 'url'>): string =>
  kind === 'handle-server' ? url : `${kind}:${url}`;
