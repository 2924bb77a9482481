// The time without a lease after an outage in which Redis refuses connections, in virtual time.
import { describe, expect, test } from 'vitest';
import { LEASE_MS } from '../../src/cache/coherence/lease.js';
import { reconnectDelayMs } from '../../src/cache/redis/connections.js';
import { Instance } from './instance.js';
import { LIMIT_MS, createScene, waitFor } from './scene.js';
import { Simulation } from './simulation.js';
import { Upstream } from './upstream.js';

/** Time after the last renewal at which the connections are lost, in ms. */
const PHASES = Array.from({ length: 20 }, (_, at) => 25 * at);

/** Returns whether an instance loses its lease while Redis is away, and keeps its run, for `awayMs`. */
async function losesLease(phaseMs: number, awayMs: number): Promise<boolean> {
  const { scheduler, random, network, ...simulation } = await create();
  const { redis, away } = simulation;
  let isAway = false;
  const instance = new Instance({
    process: simulation.process,
    network,
    upstream: new Upstream(scheduler, random),
    findRedis: () => (isAway ? away : redis),
    disconnectedWrites: 'wait',
    disconnectedMaxAgeMs: 0,
    commandTimeoutMs: 200,
    isCluster: false,
  });
  instance.start();
  expect(await scheduler.runUntil(10_000, () => instance.hasLease)).toBe(true);
  await scheduler.runFor(2000 + phaseMs);
  isAway = true;
  for (const connection of network.connections()) connection.reset();
  let isLost = false;
  const watch = (): boolean => {
    isLost ||= !instance.hasLease;
    return false;
  };
  await scheduler.runUntil(scheduler.now + awayMs, watch);
  isAway = false;
  await scheduler.runUntil(scheduler.now + LEASE_MS, watch);
  return isLost;
}

async function create() {
  const simulation = await Simulation.create(1);
  const { scheduler, random, network } = simulation;
  const away = simulation.redis('away');
  away.host.kill();
  return {
    scheduler,
    random,
    network,
    process: simulation.process('i'),
    redis: simulation.redis('redis'),
    away,
  };
}

describe('reconnection to Redis', () => {
  test('succeeds within the lease after an outage of 1.3 s, whenever the connections are lost', async () => {
    const lost: number[] = [];
    for (const phaseMs of PHASES) if (await losesLease(phaseMs, 1300)) lost.push(phaseMs);
    expect(lost).toEqual([]);
  });

  test('keeps the entries after 40 s, when the Redis clock is known so inexactly that a renewal counts as late', async () => {
    const { world, handle, writer, reader } = await createScene();
    const { scheduler, network } = world.simulation;
    for (const instance of [writer, reader]) instance.start();
    await waitFor(world, () => writer.hasLease && reader.hasLease);
    world.upstream.change(handle);
    await scheduler.settle(reader.server!.read(handle, false), LIMIT_MS);
    const line = network.line(reader.process, world.redis);
    line.cut();
    await scheduler.runFor(40_000);
    line.mend();
    await waitFor(world, () => reader.hasLease);
    expect(reader.server!.fresh(handle)).toBeDefined();
  });

  test('is tried at least every 100 ms during a lease, and later once per second', () => {
    const delays = Array.from({ length: 30 }, (_, at) => reconnectDelayMs(at + 1));
    expect(Math.max(...delays.slice(0, LEASE_MS / 100))).toBe(100);
    expect([delays.at(-1), reconnectDelayMs(10_000)]).toEqual([1000, 1000]);
  });
});
