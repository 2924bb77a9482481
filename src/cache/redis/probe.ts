// Tests Redis once: its role, and the user's rights to write, read, delete, run scripts and exchange messages.
import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { untilDeadline } from '../../clock.js';
import { ASSERT_MAY_PUBLISH } from './coherence-scripts.js';
import { digestOf } from './commands.js';
import { type RedisAddress, type RedisConnections, openRedis, openSubscription } from './connections.js';
import { infoField, readRunId, riskyEviction, serverVersion, timeoutError } from './errors.js';
import { createChannels } from './namespace.js';

/** Covers the connection timeout (2 s), a login and a few commands. */
const PROBE_TIMEOUT_MS = 5000;
/** TTL of the probe key, in case its deletion fails. */
const KEY_MS = 10_000;

/** Uses the clock, and asserts the rights that the scripts of coherence need. */
const SCRIPT = `${ASSERT_MAY_PUBLISH}
redis.call('TIME')
assertMayPublish(ARGV[1], ARGV[2])
return redis.call('DEL', KEYS[1])`;

/** Probes Redis on a separate connection. @throws Error when Redis is unusable */
export async function probeRedis(address: RedisAddress, keyPrefix: string) {
  const connections = openRedis(address);
  const { commands, isCluster } = connections;
  // ioredis keeps retrying, but only the first error counts.
  const opened = new Promise((resolve, reject) => commands.on('error', reject).once('ready', resolve));
  const work = async () => {
    await opened;
    const info = await commands.info();
    readRunId(info, isCluster);
    if (!isCluster && infoField(info, 'cluster_enabled') === '1')
      throw new Error('CLUSTER it is a node of a cluster');
    // Commands run one at a time, because the user may lack the right to any of them.
    const key = `${keyPrefix}probe:${randomUUID()}`;
    await commands.set(key, '1', 'PX', KEY_MS);
    await commands.get(key);
    await commands.del(key);
    const { publish, ofGroup } = createChannels(keyPrefix, isCluster);
    const args = [key, publish, ofGroup('bans')];
    await commands.eval(SCRIPT, 1, ...args);
    await commands.evalsha(digestOf(SCRIPT), 1, ...args);
    await exchangeMessages(connections, keyPrefix);
    return { version: serverVersion(info), policy: riskyEviction(info) };
  };
  try {
    return await untilDeadline(work(), PROBE_TIMEOUT_MS, timeoutError);
  } finally {
    commands.disconnect();
  }
}

/** Subscribes at each master, and publishes: without messages, an instance never gets a lease. */
async function exchangeMessages(connections: RedisConnections, keyPrefix: string): Promise<void> {
  const member = randomUUID();
  const channels = createChannels(keyPrefix, connections.isCluster);
  const watch = (opened: Redis) => opened.on('error', () => undefined);
  const ignored = { onMessage: () => undefined, onLost: () => undefined };
  for (const master of connections.masters()) {
    const names = channels.at(master, member);
    const subscription = await openSubscription(connections, { master, channels: names, watch }, ignored);
    subscription.close();
  }
  await connections.commands.call(channels.publish, channels.ofMember(member), '');
}
