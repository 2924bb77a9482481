// The connections of one process to the simulated Redis, created as `openRedis` creates them with ioredis.
import type { Redis } from 'ioredis';
import type { RedisConnections, RedisAddress } from '../../src/cache/redis/connections.js';
import { IoredisClient, type IoredisDeps } from './ioredis-client.js';

/** Minimum command timeout, as in `openRedis`. */
const MIN_COMMAND_TIMEOUT_MS = 500;

export function openSimulated(
  { isCluster, ...deps }: Omit<IoredisDeps, 'commandTimeoutMs'> & { isCluster: boolean },
  { commandTimeoutMs }: RedisAddress,
): RedisConnections {
  const all = { ...deps, commandTimeoutMs: Math.max(MIN_COMMAND_TIMEOUT_MS, 2 * commandTimeoutMs) };
  const client = new IoredisClient(all, 'commands');
  const commands = client as unknown as Redis;
  return {
    commands,
    isCluster,
    clientOf: () => commands,
    masters: () => [{ name: 'master', client: commands, holds: () => true }],
    database: 0,
    openMessageConnection: () => new IoredisClient(all, 'messages') as unknown as Redis,
    rediscover() {
      if (client.status === 'connect' || client.status === 'ready') client.disconnect(true);
    },
    refreshSlots: () => Promise.resolve(),
  };
}
