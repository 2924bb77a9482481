// Two instances in a world without random faults; most tests take one as writer, the other as reader.
import { expect } from 'vitest';
import type { Instance } from './instance.js';
import { World } from './world.js';

/** Virtual time within which everything that a scene waits for has happened. */
export const LIMIT_MS = 60_000;

export interface Scene {
  world: World;
  handle: string;
  writer: Instance;
  reader: Instance;
}

export async function createScene(more: { isCluster?: true } = {}): Promise<Scene> {
  const world = await World.create(1, () => ({
    instances: 2,
    disconnectedWrites: 'wait',
    disconnectedMaxAgeMs: 0,
    commandTimeoutMs: 200,
    keptLines: 0,
    ...more,
  }));
  const [writer, reader] = world.instances as [Instance, Instance];
  const [handle] = world.handles as [string];
  return { world, handle, writer, reader };
}

export async function waitFor({ now, simulation }: World, condition: () => boolean): Promise<void> {
  expect(await simulation.scheduler.runUntil(now + LIMIT_MS, condition)).toBe(true);
}

/** Starts an instance, which stores the record in Redis. */
export async function storeRecord({ world, handle }: Scene, instance: Instance): Promise<void> {
  instance.start();
  await waitFor(world, () => instance.hasLease);
  world.upstream.change(handle);
  await world.simulation.scheduler.settle(instance.server!.read(handle, false), LIMIT_MS);
  await waitFor(world, () =>
    [...world.redis.keyspace.keys()].some((key) => key.endsWith(`:entry:${handle}`)),
  );
}
