// Tests Redis once: its role, and the user's rights to write, read, delete and run scripts.
import { randomUUID } from 'node:crypto';
import { untilDeadline } from '../clock.js';
import { type RedisAddress, openRedis } from './connections.js';
import { timeoutError } from './errors.js';

/** Covers the connection timeout (2 s), a login and a few commands. */
const PROBE_TIMEOUT_MS = 5000;
/** TTL of the probe key, in case its deletion fails. */
const KEY_MS = 10_000;

/** Probes Redis on a separate connection. Returns the server version. @throws Error when Redis is unusable */
export async function probeRedis(address: RedisAddress, keyPrefix: string): Promise<string | undefined> {
  const { commands, isCluster } = openRedis(address);
  // ioredis keeps retrying, but only the first error counts.
  const opened = new Promise((resolve, reject) => {
    commands.on('error', reject).once('ready', resolve);
  });
  const work = async (): Promise<string | undefined> => {
    await opened;
    const info = await commands.info();
    assertMaster(info, isCluster);
    // Commands run one at a time, because the user may lack the right to any of them.
    const key = `${keyPrefix}probe:${randomUUID()}`;
    await commands.set(key, '1', 'PX', KEY_MS);
    await commands.get(key);
    await commands.del(key);
    await commands.eval("return redis.call('DEL', KEYS[1])", 1, key);
    return /^redis_version:(\S+)/m.exec(info)?.[1];
  };
  try {
    return await untilDeadline(work(), PROBE_TIMEOUT_MS, timeoutError);
  } finally {
    commands.disconnect();
  }
}

/**
 * Rejects a replica, because writes to it do not reach its master, and a single cluster node, because it
 * holds only some keys.
 */
function assertMaster(info: string, isCluster: boolean): void {
  if (/^role:slave/m.test(info)) throw new Error('READONLY it is a replica');
  if (!isCluster && /^cluster_enabled:1/m.test(info)) throw new Error('CLUSTER it is a node of a cluster');
}
