// What one worker may take of what the machine gives.
import type { Config } from '../../config/schema.js';

/** The bounds in the configuration are those of the machine: each worker gets its part. */
export function shareOf(config: Config, workers: number): Config {
  const part = (whole: number): number => Math.max(1, Math.ceil(whole / workers));
  const { server, cache, http, upstream } = config;
  const { maxConnections } = server;
  const { hotPath } = http;
  return {
    ...config,
    // 0 is no limit, and stays so.
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

/** Code, sockets and garbage between two collections need room beside what is kept (MiB). */
const BASE_HEAP_MIB = 512;

/** The V8 heap a worker needs (MiB): V8's own limit may be less than what the cache is allowed to take. */
export function heapMiB(config: Config, workers: number): number {
  const { cache, http } = shareOf(config, workers);
  return BASE_HEAP_MIB + Math.ceil((1.5 * (cache.maxBytes + http.hotPath.maxBytes)) / 1024 ** 2);
}
