// An instance that stops after it has acknowledged a write without Redis: the others serve no older record.
import { describe, expect, test } from 'vitest';
import { type Scene, LIMIT_MS, createScene, waitFor } from './scene.js';

/** Starts both instances, of which the reader has the record in memory and in Redis. */
async function create(): Promise<Scene> {
  const scene = await createScene();
  const { world, handle, writer, reader } = scene;
  for (const instance of [writer, reader]) instance.start();
  await waitFor(world, () => writer.hasLease && reader.hasLease);
  world.upstream.change(handle);
  await world.simulation.scheduler.settle(reader.server!.read(handle, false), LIMIT_MS);
  await waitFor(world, () =>
    [...world.redis.keyspace.keys()].some((key) => key.endsWith(`:entry:${handle}`)),
  );
  return scene;
}

/** Writes while Redis hangs. Redis then returns, and `stop` begins once the writer is connected. */
async function writeAndStop(
  { world, handle, writer }: Scene,
  stop: (end: () => Promise<void>) => Promise<void>,
): Promise<number | undefined> {
  const { scheduler } = world.simulation;
  const { cache } = writer.server!;
  world.redis.host.pause('stopped');
  await waitFor(world, () => !writer.hasLease);
  const version = await scheduler.settle(writer.server!.write(handle), LIMIT_MS);
  world.redis.host.resume();
  await waitFor(world, () => cache.commands!.isConnected());
  await stop(() => scheduler.settle(cache.close(), LIMIT_MS));
  writer.kill();
  return version;
}

/** Returns what was written, and what the other instance reads once it has its lease again. */
async function readAfterStop(scene: Scene, written: Promise<number | undefined>): Promise<unknown[]> {
  const { world, handle, reader } = scene;
  const version = await written;
  world.redis.host.resume();
  await waitFor(world, () => reader.hasLease);
  const read = await world.simulation.scheduler.settle(reader.server!.read(handle, false), LIMIT_MS);
  return [version, read.version];
}

describe('an instance that stops after a write without Redis', () => {
  test.each([0, 1, 5, 20, 100, 1000])(
    'leaves no older record to others, %i ms after Redis is back',
    async (afterMs) => {
      const scene = await create();
      const written = writeAndStop(scene, async (end) => {
        await scene.world.simulation.scheduler.runFor(afterMs);
        await end();
      });
      expect(await readAfterStop(scene, written)).toEqual([2, 2]);
    },
  );

  test('leaves no older record to others if Redis hangs again', async () => {
    const scene = await create();
    const written = writeAndStop(scene, (end) => {
      scene.world.redis.host.pause('stopped');
      return end();
    });
    expect(await readAfterStop(scene, written)).toEqual([2, 2]);
  });
});
