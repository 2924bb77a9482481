// A cluster that loses its member list and keeps its entries: no lease before former members may have reported.
import { describe, expect, test } from 'vitest';
import { MEMBERSHIP_MS } from '../../src/cache/coherence/lease.js';
import { ignoreListAge } from './mutation-tools.js';
import { createScene } from './scene.js';

const OUTAGE_MS = 12_000;

/** Loses the member list while both instances are disconnected. @returns the time until the first has a lease */
async function msUntilLease(): Promise<number> {
  const { world } = await createScene({ isCluster: true });
  const { instances, redis, simulation } = world;
  const { scheduler, network } = simulation;
  const [returning] = instances as [(typeof instances)[0]];
  for (const instance of instances) instance.start();
  expect(await scheduler.runUntil(10_000, () => instances.every(({ hasLease }) => hasLease))).toBe(true);
  const lines = instances.map(({ process }) => network.line(process, redis));
  for (const line of lines) line.cut();
  await scheduler.runFor(OUTAGE_MS);
  expect(instances.some(({ hasLease }) => hasLease)).toBe(false);
  // In a cluster of several masters, the list is lost with its master, and the others keep their entries.
  redis.evict('p:members');
  network.line(returning.process, redis).mend();
  const since = world.now;
  expect(await scheduler.runUntil(since + 30_000, () => returning.hasLease)).toBe(true);
  return world.now - since;
}

describe('an instance that returns to a cluster without a member list', () => {
  test('gets its lease only after former members may have reported their writes', async () => {
    expect(await msUntilLease()).toBeGreaterThan(MEMBERSHIP_MS);
  });

  test('would get it immediately without the rule', async () => {
    const restore = ignoreListAge();
    try {
      expect(await msUntilLease()).toBeLessThan(MEMBERSHIP_MS);
    } finally {
      restore();
    }
  });
});
