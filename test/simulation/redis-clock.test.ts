// The clock of Redis is set by a second, or back by an hour, while the age of the member list matters.
import { expect, test } from 'vitest';
import { MAX_REDIS_CLOCK_STEP_MS } from '../../src/cache/coherence/lease.js';
import { type Scene, LIMIT_MS, createScene, waitFor } from './scene.js';

/** Starts an instance, and stores the record in its memory. */
async function startWithRecord({ world, handle, reader }: Scene): Promise<void> {
  reader.start();
  await waitFor(world, () => reader.hasLease);
  world.upstream.change(handle);
  await world.simulation.scheduler.settle(reader.server!.read(handle, false), LIMIT_MS);
}

test('a write waits for the members that a new list lacks, although the clock of Redis is set ahead by a second', async () => {
  const scene = await createScene();
  const { world, handle, writer, reader } = scene;
  const { scheduler, network } = world.simulation;
  await startWithRecord(scene);
  network.line(reader.process, world.redis).cut();
  world.redis.host.kill();
  world.redis.restart();
  writer.start();
  await waitFor(world, () => [...world.redis.keyspace.keys()].includes('p:members'));
  world.redis.host.stepWallClock(MAX_REDIS_CLOCK_STEP_MS);
  await waitFor(world, () => writer.hasLease);
  expect(reader.hasLease).toBe(true);
  expect(await scheduler.settle(writer.server!.write(handle), LIMIT_MS)).toBe(2);
  expect(reader.server!.fresh(handle)).toBeUndefined();
});

test('a write does not wait for a list that is old, although the clock of Redis is set back by an hour', async () => {
  const scene = await createScene();
  const { world, handle, reader } = scene;
  const { scheduler } = world.simulation;
  await startWithRecord(scene);
  await scheduler.runFor(5000);
  world.redis.host.stepWallClock(-3_600_000);
  await scheduler.runFor(5000);
  const since = world.now;
  await scheduler.settle(reader.server!.write(handle), LIMIT_MS);
  expect(world.now - since).toBeLessThan(1000);
});
