// Liveness: once all faults have ended, each instance is linked, acknowledges, serves the newest record, and keeps it.
import type { Instance } from './instance.js';
import { Violation } from './violation.js';
import type { World } from './world.js';

/** Time after the last fault within which each instance has a lease, in ms. */
export const RECOVERY_MS = 10_000;
/** Time within which a linked instance then answers a read or acknowledges a write, in ms. */
const ANSWER_MS = 5000;
/** Time within which a fence ends whose writer is gone; until then, nothing of its handle is kept, in ms. */
const FENCE_END_MS = 30_000;
/** Time within which a loaded record is in memory, also if Redis stores it first, in ms. */
const STORE_MS = 500;
/** The upstream refuses few writes. */
const MAX_REFUSALS = 10;

/**
 * Writes each handle through each instance and reads it on all instances; reads it again after the last fence, and looks
 * for it in memory. @throws Violation
 */
export async function checkLiveness(world: World): Promise<void> {
  const { scheduler } = world.simulation;
  for (const instance of world.instances)
    if (!instance.hasLease)
      throw new Violation('each instance has a lease after the last fault', instance.name);
  for (const writer of world.instances)
    for (const handle of world.handles) {
      const version = await write(world, writer, handle);
      for (const reader of world.instances) await assertReads(world, reader, { handle, version });
    }
  await scheduler.runUntil(world.now + FENCE_END_MS);
  for (const handle of world.handles) await assertKept(world, handle);
}

async function write(world: World, writer: Instance, handle: string): Promise<number> {
  for (let refusals = 0; refusals <= MAX_REFUSALS; refusals++) {
    const version = await inTime(
      world,
      `${writer.name} acknowledges a write`,
      serverOf(writer).write(handle),
    );
    if (version !== undefined) return version;
  }
  throw new Violation('each instance acknowledges writes after the last fault', writer.name);
}

async function assertReads(
  world: World,
  reader: Instance,
  { handle, version }: { handle: string; version: number },
): Promise<void> {
  const answered = await inTime(world, `${reader.name} answers a read`, serverOf(reader).read(handle, false));
  if (answered.isFresh && answered.version === version) return;
  const detail = `${reader.name} answers version ${answered.version} of ${handle} instead of ${version}`;
  throw new Violation('each instance serves the newest record after the last fault', detail);
}

async function assertKept(world: World, handle: string): Promise<void> {
  for (const instance of world.instances)
    await inTime(world, `${instance.name} answers a read`, serverOf(instance).read(handle, false));
  await world.simulation.scheduler.runUntil(world.now + STORE_MS);
  for (const instance of world.instances) {
    if (serverOf(instance).fresh(handle) !== undefined) continue;
    const detail = `${instance.name} does not keep ${handle}`;
    throw new Violation('each instance keeps the records that it reads after the last fault', detail);
  }
}

async function inTime<T>({ simulation }: World, what: string, promise: Promise<T>): Promise<T> {
  try {
    return await simulation.scheduler.settle(promise, ANSWER_MS);
  } catch (error) {
    throw new Violation('each instance works after the last fault', `${what}: ${String(error)}`);
  }
}

function serverOf({ name, server }: Instance): NonNullable<Instance['server']> {
  if (server === undefined) throw new Violation('each instance runs after the last fault', name);
  return server;
}
