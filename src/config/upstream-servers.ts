// Derives the list of configured servers from `upstream` or `upstreams`.
import type { z } from 'zod';
import { DEFAULT_CONCURRENCY, NO_SERVER, type upstream, type upstreams } from './schema-upstream.js';
import type { SectionsOf } from './fields.js';

type ListedServer = z.output<typeof upstreams>[number];

/** A server with its prefixes (`21.T1`, `21.T1.*` or `*`, in upper case), limits and timeouts. */
export interface ServerConfig extends Omit<ListedServer, 'url'> {
  url: string;
  /** Section key: `upstream`, or `upstreams.0` and so on. */
  key: string;
}

export type UpstreamSections = SectionsOf<{ upstream: typeof upstream; upstreams: typeof upstreams }>;

/** Whether the configuration sets `upstream.url` (possibly to `none`) or lists `upstreams`. */
export const isUpstreamGiven = ({ upstream, upstreams }: UpstreamSections): boolean =>
  upstream.url !== undefined || upstreams.length > 0;

const HANDLE_SERVER = { kind: 'handle-server', existenceCheck: false, readOnly: false } as const;

/** Returns the configured servers, or none for `upstream.url: none`. */
export function upstreamServers({ upstream, upstreams }: UpstreamSections): ServerConfig[] {
  const { url } = upstream;
  if (url === NO_SERVER) return [];
  if (url !== undefined) {
    return [
      { ...upstream, ...HANDLE_SERVER, ...withConnections(upstream), prefixes: ['*'], url, key: 'upstream' },
    ];
  }
  return upstreams.flatMap(({ kind, url: listed, ...server }, at) => {
    if (kind === 'none' || listed === undefined) return [];
    return [{ ...server, ...withConnections(server), kind, url: listed, key: `upstreams.${at}` }];
  });
}

/** Returns the connections of a server, with two more for each read beyond the default `concurrency`. */
const withConnections = ({
  connections,
  concurrency,
}: Pick<ListedServer, 'connections' | 'concurrency'>) => ({
  connections: connections + 2 * Math.max(0, concurrency - DEFAULT_CONCURRENCY),
});

/** Returns the prefixes with `kind: none`, whose records come from a seed, a snapshot, an import or a plugin. */
export const unservedPrefixes = ({ upstreams }: Pick<UpstreamSections, 'upstreams'>): string[] =>
  upstreams.flatMap(({ kind, prefixes }) => (kind === 'none' ? prefixes : []));

/** Returns the maximum write duration (ms) at any of these servers, including the queue. */
export const maxWriteMs = (
  servers: readonly Pick<ServerConfig, 'queueTimeoutMs' | 'writeTimeoutMs'>[],
): number =>
  Math.max(0, ...servers.map(({ queueTimeoutMs, writeTimeoutMs }) => queueTimeoutMs + writeTimeoutMs));

/**
 * Returns an identifier of what a cache holds; instances with equal identifiers may share one. Keys of entries keep the
 * case of suffixes if `upstream.caseSensitive` is set, so that instances that differ in it invalidate different keys.
 */
export const describeUpstream = (
  servers: Parameters<typeof describeServers>[0],
  caseSensitive: boolean,
): string => describeServers(servers) + (caseSensitive ? ' case-sensitive' : '');

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
