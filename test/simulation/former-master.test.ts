// A former master returns to an instance that never reached its successor, and loses its member list meanwhile.
import { describe, expect, test } from 'vitest';
import { MEMBERSHIP_MS } from '../../src/cache/coherence/lease.js';
import { forgetLostLapsed } from './mutation-tools.js';
import type { RedisServer } from './redis.js';
import { type Scene, LIMIT_MS, createScene, storeRecord, waitFor } from './scene.js';

/** Stores the record in Redis, which hangs. The record is then written at a new master, and the writer killed. */
async function writeElsewhere(scene: Scene): Promise<number | undefined> {
  const { world, handle, writer } = scene;
  const { scheduler, network } = world.simulation;
  const former = world.redis;
  await storeRecord(scene, writer);
  former.host.pause('stopped');
  world.promote(former.replica(0));
  for (const connection of network.connections()) connection.reset();
  await waitFor(world, () => !writer.hasLease);
  await waitFor(world, () => writer.hasLease);
  const version = await scheduler.settle(writer.server!.write(handle), LIMIT_MS);
  writer.kill();
  world.redis.host.kill();
  return version;
}

/** Starts the reader, and loses the member list while it waits for the writer. @returns the version that it reads */
async function readFrom(former: RedisServer, { world, handle, reader }: Scene): Promise<number> {
  const { scheduler } = world.simulation;
  former.host.resume();
  world.return(former);
  reader.start();
  await scheduler.runFor(MEMBERSHIP_MS / 2);
  expect(reader.hasLease).toBe(false);
  expect(former.evict('p:members')).toBe(true);
  await waitFor(world, () => reader.hasLease);
  const { version } = await scheduler.settle(reader.server!.read(handle, false), LIMIT_MS);
  return version;
}

async function play(): Promise<{ written: number | undefined; read: number }> {
  const scene = await createScene();
  const former = scene.world.redis;
  const written = await writeElsewhere(scene);
  return { written, read: await readFrom(former, scene) };
}

describe('an instance that joins a former master', () => {
  test('reads what a lapsed member wrote elsewhere, although the list that names it is lost', async () => {
    expect(await play()).toEqual({ written: 2, read: 2 });
  });

  test('would read the older record of the former master without the rule', async () => {
    const restore = forgetLostLapsed();
    try {
      expect(await play()).toEqual({ written: 2, read: 1 });
    } finally {
      restore();
    }
  });
});
