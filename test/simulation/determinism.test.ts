// Determinism: equal seeds give equal runs, and different seeds give different runs.
import { describe, expect, test } from 'vitest';
import { CHANGE } from '../../src/cache/redis/coherence-scripts.js';
import { Simulation } from './simulation.js';

/** Returns the trace of processes that exchange messages while connections break and processes stop. */
async function traceOf(
  seed: number,
): Promise<{ hash: string; heard: number; events: number; scripts: number }> {
  const world = await Simulation.create(seed);
  const redis = world.redis('redis');
  let heard = 0;
  const run = async (name: string): Promise<void> => {
    const process = world.process(name);
    const dial = world.dialer(process, () => redis);
    const messages = await dial.subscription();
    messages.onMessage = () => heard++;
    await messages.subscribe(['forget']);
    const commands = await dial.commands();
    const write = async (): Promise<void> => {
      const id = process.clock.randomId();
      const change = (kind: string): Promise<unknown> => {
        const args = ['run', kind, 'k', `${name}/${id}`, 5000, 'forget', 'PUBLISH'];
        return commands.script(CHANGE, ['e', 's'], [...args, `${name} k`]);
      };
      await change('raise');
      await messages.ping();
      await change('changed');
    };
    const again = (): void => {
      void write().then(() => process.clock.after(world.random.integer(1, 20), again));
    };
    again();
    const line = world.network.line(process, redis);
    const trouble = (): void => {
      if (world.random.chance(0.5)) line.cut();
      else process.pause('suspended');
      world.scheduler.after(30, 'mended', () => {
        line.mend();
        process.resume();
      });
      world.scheduler.after(world.random.integer(100, 400), 'trouble', trouble);
    };
    trouble();
  };
  for (const name of ['a', 'b', 'c']) void run(name);
  await world.scheduler.runFor(5000);
  return { hash: world.trace.hash, heard, events: world.scheduler.eventCount, scripts: redis.scriptCount };
}

describe('deterministic simulation', () => {
  test('is reproduced by the same seed', async () => {
    const first = await traceOf(1);
    expect(first.heard).toBeGreaterThan(100);
    expect(await traceOf(1)).toEqual(first);
  });

  test('differs between seeds', async () => {
    const hashes = [];
    for (let seed = 0; seed < 10; seed++) hashes.push((await traceOf(seed)).hash);
    expect(new Set(hashes).size).toBe(10);
  });
});
