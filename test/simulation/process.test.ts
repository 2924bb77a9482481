// A simulated process: its clocks and timers, including pauses and kills.
import { describe, expect, test } from 'vitest';
import type { Pause, Process, ProcessOptions } from './process.js';
import { Simulation } from './simulation.js';

async function worldWith(options: ProcessOptions = {}): Promise<{ world: Simulation; process: Process }> {
  const world = await Simulation.create(7);
  return { world, process: world.process('a', { timerLatenessMs: 0, ...options }) };
}

describe('simulated process', () => {
  test('has clocks that follow virtual time at its own rate', async () => {
    const { world, process } = await worldWith({ wallOffsetMs: 5000, clockRate: 1.1 });
    const [wall, monotonic] = [process.clock.now(), process.clock.monotonic()];
    await world.scheduler.runFor(1000);
    expect(process.clock.now() - wall).toBe(1100);
    expect(process.clock.monotonic() - monotonic).toBeCloseTo(1100);
  });

  test('runs timers on its own clock', async () => {
    const { world, process } = await worldWith({ clockRate: 2 });
    let at = 0;
    process.clock.after(1000, () => (at = world.scheduler.now));
    const cancel = process.clock.after(10, () => {
      throw new Error('it was cancelled');
    });
    cancel();
    await world.scheduler.runFor(1000);
    expect(at).toBeCloseTo(500);
  });

  test('settles all promises before the next event', async () => {
    const { world, process } = await worldWith();
    const order: string[] = [];
    const chain = async (): Promise<void> => {
      for (let turn = 0; turn < 100; turn++) await Promise.resolve();
      order.push('promises');
    };
    process.clock.after(1, () => void chain());
    process.clock.after(1.0001, () => order.push('next'));
    await world.scheduler.runFor(10);
    expect(order).toEqual(['promises', 'next']);
  });

  test.each<[Pause, wallMs: number, monotonicMs: number, firedAt: number]>([
    ['stopped', 1100, 1100, 1100],
    ['suspended', 1100, 100, 1600],
    ['unnoticed', 100, 100, 1600],
  ])('has correct clocks and timers after a pause (%s)', async (kind, wallMs, monotonicMs, firedAt) => {
    const { world, process } = await worldWith();
    const { clock } = process;
    const [wall, started] = [clock.now(), clock.monotonic()];
    let fired = 0;
    clock.after(600, () => (fired = world.scheduler.now));
    await world.scheduler.runFor(100);
    process.pause(kind);
    await world.scheduler.runFor(1000);
    expect(fired).toBe(0);
    process.resume();
    expect(clock.now() - wall).toBe(wallMs);
    expect(clock.monotonic() - started).toBeCloseTo(monotonicMs);
    await world.scheduler.runFor(1000);
    expect(fired).toBeCloseTo(firedAt);
  });

  test('runs no timer from before a kill, even after a restart', async () => {
    const { world, process } = await worldWith();
    process.clock.after(10, () => {
      throw new Error('this life is over');
    });
    process.kill();
    process.start();
    let isFired = false;
    process.clock.after(10, () => (isFired = true));
    await world.scheduler.runFor(100);
    expect(isFired).toBe(true);
  });

  test('can have its wall clock set back', async () => {
    const { world, process } = await worldWith();
    const wall = process.clock.wall();
    await world.scheduler.runFor(100);
    process.stepWallClock(-1000);
    expect(process.clock.wall() - wall).toBe(-900);
    expect(process.clock.monotonic()).toBeCloseTo(100);
  });

  test.each<[Pause, unnoticedUntil: number]>([
    ['stopped', -Infinity],
    ['suspended', -Infinity],
    ['unnoticed', 600],
  ])('computes unnoticedUntil after a pause (%s)', async (kind, unnoticedUntil) => {
    const { world, process } = await worldWith();
    await world.scheduler.runFor(100);
    process.pause(kind);
    await world.scheduler.runFor(500);
    process.resume();
    expect(process.unnoticedUntil).toBe(unnoticedUntil);
  });

  test.each<[string, stepMs: number]>([
    ['set back', -5000],
    ['set forward', 5000],
  ])('knows when its time was, or earlier, after its wall clock was %s', async (_what, stepMs) => {
    const { world, process } = await worldWith({ clockRate: 0.5 });
    await world.scheduler.runFor(100);
    const time = process.clock.now();
    await world.scheduler.runFor(100);
    process.stepWallClock(stepMs);
    expect(process.momentOf(time)).toBe(stepMs < 0 ? 100 : -9900);
  });

  test('ignores an unnoticed pause while it is already stopped', async () => {
    const { world, process } = await worldWith();
    process.pause('stopped');
    process.pause('unnoticed');
    expect(process.unnoticedUntil).toBe(-Infinity);
    process.resume();
    process.pause('unnoticed');
    expect(process.unnoticedUntil).toBe(Infinity);
    await world.scheduler.runFor(300);
    process.resume();
    process.resume();
    expect(process.unnoticedUntil).toBe(300);
  });

  test('fails the run when one of its events throws', async () => {
    const { world, process } = await worldWith();
    process.clock.after(1, () => {
      throw new Error('broken');
    });
    await expect(world.scheduler.runFor(10)).rejects.toThrow('broken');
  });
});
