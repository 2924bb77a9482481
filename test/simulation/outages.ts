// Tracks which instances are cut off from Redis, because exceptions in the specification depend on how many
// are cut off.
import { MEMBERSHIP_MS } from '../../src/cache/coherence/lease.js';
import type { Times } from '../../src/cache/entry.js';
import type { Instance } from './instance.js';
import type { Process } from './process.js';
import type { World } from './world.js';

/** Time for which a returning instance with a fast clock waits for reports from other instances. */
const AWAITED_MS = MEMBERSHIP_MS / 1.05;

/** Suspensions that a process may not notice, by which its entries are older than they seem, in ms. */
const UNNOTICED_MS = 250 / 0.95;

/**
 * Returns the time up to which unreported acknowledgements count for an entry. An entry loaded without Redis
 * stays fresh for `redis.disconnectedMaxAge`, even with a new lease, while other instances may have
 * acknowledged a write without Redis.
 */
export function awaitedUntil(world: World, process: Process, { requestedAt, staleAt }: Times): number {
  const lifeMs = staleAt - requestedAt;
  if (lifeMs <= 0 || lifeMs > world.options.disconnectedMaxAgeMs) return Infinity;
  return process.momentOf(requestedAt) - UNNOTICED_MS;
}

export function noteOutages(world: World): void {
  const { instances, now } = world;
  for (const instance of instances) noteReach(world, instance);
  const linked = instances.filter((instance) => instance.hasLease);
  for (const instance of linked) {
    instance.linkedAt = now;
    instance.wasAlone = false;
  }
  noteForgotten(world, linked);
  if (!linked.some(({ reachesRedisSince }) => now - reachesRedisSince > AWAITED_MS)) return;
  for (const instance of instances) {
    if (instance.wasAlone || linked.includes(instance)) continue;
    instance.wasAlone = true;
    world.history.isAlone(instance.name);
  }
}

/**
 * An instance with a lease does not wait for instances that a lost member list named: what they acknowledge from now on
 * is an exception. What they acknowledged before is not, because Redis lost its entries too.
 */
function noteForgotten({ instances, membersLostAt }: World, linked: readonly Instance[]): void {
  if (linked.length === 0) return;
  for (const instance of instances)
    if (!linked.includes(instance) && instance.linkedAt < membersLostAt) instance.wasAlone = true;
}

function noteReach(world: World, instance: Instance): void {
  const { now } = world;
  if (!reachesRedis(world, instance)) instance.reachesRedisSince = Infinity;
  else if (instance.reachesRedisSince === Infinity) instance.reachesRedisSince = now;
  if (instance.server?.cache.isRedisReadable() !== true) instance.withoutRedisAt = now;
}

function reachesRedis({ redis, simulation }: World, { process }: Instance): boolean {
  if (!redis.host.isAlive || redis.host.isPaused || !process.isAlive || process.isPaused) return false;
  return !simulation.network.line(process, redis).isCut;
}
