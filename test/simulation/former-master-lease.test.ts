// A former master that hung returns to an instance that had joined it, but had no lease yet.
import { expect, test } from 'vitest';
import { GROUPS } from '../../src/cache/coherence/groups.js';
import { MEMBERSHIP_MS } from '../../src/cache/coherence/lease.js';
import { LIMIT_MS, createScene, waitFor } from './scene.js';

test('its write waits for an instance that has a lease of the master in between', async () => {
  const { world, handle, writer, reader } = await createScene();
  const { scheduler, network } = world.simulation;
  const former = world.redis;
  writer.start();
  await waitFor(world, () => former.keyspace.size > GROUPS);
  former.host.pause('stopped');
  const hungAt = world.now;
  world.promote(former.replica(0));
  reader.start();
  await waitFor(world, () => reader.hasLease);
  world.upstream.change(handle);
  await scheduler.settle(reader.server!.read(handle, false), LIMIT_MS);
  await scheduler.runUntil(hungAt + MEMBERSHIP_MS);
  world.redis.host.kill();
  network.line(reader.process, former).cut();
  former.host.resume();
  world.return(former);
  await waitFor(world, () => writer.hasLease);
  expect(reader.server!.fresh(handle)).toBeDefined();
  expect(await scheduler.settle(writer.server!.write(handle), LIMIT_MS)).toBe(2);
  expect(reader.server!.fresh(handle)).toBeUndefined();
});
