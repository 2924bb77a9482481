// Divides the limits of a machine among its workers.
import type { Config } from '../../config/schema.js';
import { mapServers } from '../../config/upstream-servers.js';

type Part = (whole: number) => number;
type ConnectionLimit = 'maxConnections' | 'maxConnectionsPerNetwork';

/** The configured limits hold for the whole machine. */
export function divideLimits(config: Config, workers: number): Config {
  const part: Part = (whole) => Math.max(1, Math.ceil(whole / workers));
  const { server, cache, http, native } = config;
  const { hotPath } = http;
  return {
    ...mapServers(config, ({ connections, concurrency, minConcurrency, queue }) => ({
      connections: part(connections),
      concurrency: part(concurrency),
      minConcurrency: part(minConcurrency),
      queue: part(queue),
    })),
    server: { ...server, ...divideConnections(server, part) },
    native: divideNative(native, part),
    cache: { ...cache, maxBytes: part(cache.maxBytes) },
    http: {
      ...http,
      bodiesMaxBytes: part(http.bodiesMaxBytes),
      unsentMaxBytes: part(http.unsentMaxBytes),
      hotPath: { ...hotPath, maxBytes: part(hotPath.maxBytes) },
    },
  };
}

/** A worker of several receives its share of the datagrams. */
function divideNative(native: Config['native'], part: Part): Config['native'] {
  const { tcp, udp } = native;
  return {
    ...native,
    tcp: { ...tcp, ...divideConnections(tcp, part) },
    udp: { ...udp, bytesPerSecond: partOfLimit(udp.bytesPerSecond, part) },
  };
}

const divideConnections = (
  { maxConnections, maxConnectionsPerNetwork }: Pick<Config['server'], ConnectionLimit>,
  part: Part,
): Pick<Config['server'], ConnectionLimit> => ({
  maxConnections: partOfLimit(maxConnections, part),
  maxConnectionsPerNetwork: partOfLimit(maxConnectionsPerNetwork, part),
});

/** 0 means no limit. */
const partOfLimit = (limit: number, part: Part): number => (limit === 0 ? 0 : part(limit));

/** For code, sockets and garbage between two collections (MiB). */
const BASE_HEAP_MIB = 512;

/** The V8 heap of a worker (MiB): V8's default may be below the configured size of the cache. */
export function heapMiB(config: Config, workers: number): number {
  const { cache, http } = divideLimits(config, workers);
  return BASE_HEAP_MIB + Math.ceil((1.5 * (cache.maxBytes + http.hotPath.maxBytes)) / 1024 ** 2);
}
