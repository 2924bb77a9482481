// The text before every key of Redis where `redis.keyPrefix` says nothing.
import { hostname } from 'node:os';
import { databaseNumber } from '../cache/redis/connections.js';
import { shortHash } from '../cache/redis/namespace.js';
import { isLoopback } from '../config/addresses.js';
import type { Config } from '../config/schema.js';

/** Another one for each upstream and each database: whoever says nothing shares with nobody else. */
export function defaultKeyPrefix(
  upstreamUrl: string,
  { url, cluster }: Pick<Config['redis'], 'url' | 'cluster'>,
  machine = hostname(),
): string {
  const { origin, hostname: host } = new URL(upstreamUrl);
  // On each machine it is another server.
  const upstream = isLoopback(host) ? `${origin} of ${machine}` : origin;
  const database = databaseNumber({ url: url ?? undefined, cluster: cluster ?? undefined });
  return `hrp:${shortHash(upstream)}:${database}:`;
}
