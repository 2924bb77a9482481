// Divides the limits of a machine among its workers.
import type { Config } from '../../config/schema.js';

/** The configured limits hold for the whole machine. */
export function divideLimits(config: Config, workers: number): Config {
  const part = (whole: number): number => Math.max(1, Math.ceil(whole / workers));
  const { server, cache, http, upstream } = config;
  const { maxConnections } = server;
  const { hotPath } = http;
  return {
    ...config,
    // 0 means no limit.
    server: { ...server, maxConnections: maxConnections === 0 ? 0 : part(maxConnections) },
    cache: { ...cache, maxBytes: part(cache.maxBytes) },
    http: {
      ...http,
      bodiesMaxBytes: part(http.bodiesMaxBytes),
      hotPath: { ...hotPath, maxBytes: part(hotPath.maxBytes) },
    },
    upstream: {
      ...upstream,
      connections: part(upstream.connections),
      concurrency: part(upstream.concurrency),
      queue: part(upstream.queue),
    },
  };
}

/** For code, sockets and garbage between two collections (MiB). */
const BASE_HEAP_MIB = 512;

/** The V8 heap of a worker (MiB): V8's default may be below the configured size of the cache. */
export function heapMiB(config: Config, workers: number): number {
  const { cache, http } = divideLimits(config, workers);
  return BASE_HEAP_MIB + Math.ceil((1.5 * (cache.maxBytes + http.hotPath.maxBytes)) / 1024 ** 2);
}
