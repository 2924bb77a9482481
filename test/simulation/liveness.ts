// Liveness: once all faults have ended, each instance is linked, acknowledges, serves the newest record, and keeps it.
import type { Instance } from './instance.js';
import { handleRef } from '../../src/handle/handle.js';
import { MIRROR_INTERVAL_MS } from './mirror.js';
import type { Answered } from './server.js';
import { exists, versionOf } from './upstream.js';
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
/** Time for a list and a read, and the difference of the clocks, in ms. */
const MIRROR_SPARE_MS = 2000;
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
  if (world.options.hasPlugins) await assertMirrored(world);
}

/** Changes each record at the Handle server, and asserts that each mirror has it once its interval has passed. */
async function assertMirrored(world: World): Promise<void> {
  const { upstream, handles, simulation, instances } = world;
  for (const handle of handles) upstream.change(handle);
  await simulation.scheduler.runUntil(world.now + MIRROR_INTERVAL_MS + MIRROR_SPARE_MS);
  for (const instance of instances)
    for (const handle of handles) {
      const entry = serverOf(instance).cache.memory.inspect(handleRef(handle, false).key)?.entry;
      const version = upstream.version(handle);
      if (entry === undefined ? !exists(version) : versionOf(entry) === version) continue;
      const detail = `${instance.name} has version ${entry && versionOf(entry)} of ${handle} instead of ${version}`;
      throw new Violation('the mirror has the newest record after its interval', detail);
    }
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
  const answers = new Map<Instance, Answered>();
  for (const instance of world.instances) {
    const reading = serverOf(instance).read(handle, false);
    answers.set(instance, await inTime(world, `${instance.name} answers a read`, reading));
  }
  await world.simulation.scheduler.runUntil(world.now + STORE_MS);
  for (const [instance, { entry }] of answers) {
    // A mirror may have loaded it long before.
    const isOver = entry.staleAt <= serverOf(instance).process.clock.now();
    if (isOver || serverOf(instance).fresh(handle) !== undefined) continue;
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
