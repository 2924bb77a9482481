// A former master that hung returns with its clock set back by a second: what it lists is older than it seems.
import { describe, expect, test } from 'vitest';
import { LEASE_MS, MAX_REDIS_CLOCK_STEP_MS, MEMBERSHIP_MS } from '../../src/cache/coherence/lease.js';
import { RENEW } from '../../src/cache/redis/coherence-scripts.js';
import { withScripts } from './mutation-tools.js';
import { type Scene, LIMIT_MS, createScene, storeRecord, waitFor } from './scene.js';

/** Stores the record in Redis, which hangs. The record is then written at its successor, and the writer killed. */
async function writeElsewhere(scene: Scene, hungMs: number): Promise<void> {
  const { world, handle, writer } = scene;
  const { scheduler, network } = world.simulation;
  const former = world.redis;
  await storeRecord(scene, writer);
  former.host.pause('stopped');
  const hungAt = world.now;
  await scheduler.runFor(hungMs);
  world.promote(former.replica(0));
  for (const connection of network.connections()) {
    const { onClose } = connection;
    connection.close();
    onClose();
  }
  expect(await scheduler.settle(writer.server!.write(handle), LIMIT_MS)).toBe(2);
  writer.kill();
  world.redis.host.kill();
  expect(world.now - hungAt).toBeGreaterThan(MEMBERSHIP_MS);
  former.host.stepWallClock(-MAX_REDIS_CLOCK_STEP_MS);
  former.host.resume();
  world.return(former);
}

async function versionAtReader({ world, handle, reader }: Scene): Promise<number> {
  reader.start();
  await waitFor(world, () => reader.hasLease);
  return (await world.simulation.scheduler.settle(reader.server!.read(handle, false), LIMIT_MS)).version;
}

/** Hangs the master, which has received renewals for `hungMs` when its successor takes over. @returns the version that is read */
async function play(hungMs: number): Promise<number> {
  const scene = await createScene();
  await writeElsewhere(scene, hungMs);
  return versionAtReader(scene);
}

const MAX_DELAY_AT = 6;

describe.each([
  [
    'that seems to be current',
    0,
    withScripts((source, args) => [source.replace('current = now + ARGV[2] / 2', ''), args]),
  ],
  [
    'whose renewal the master had received when it hung',
    480,
    withScripts((source, args) => [source, source === RENEW ? args.with(MAX_DELAY_AT, LEASE_MS) : args]),
  ],
])(
  'an instance that joins a former master which was set back, and lists a member %s',
  (_what, hungMs, mutate) => {
    test('reads what the member wrote elsewhere', async () => {
      expect(await play(hungMs)).toBe(2);
    });

    test('would read the older record without the rule', async () => {
      const restore = mutate();
      try {
        expect(await play(hungMs)).toBe(1);
      } finally {
        restore();
      }
    });
  },
);
