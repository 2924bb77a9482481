import { describe, expect, test } from 'vitest';
import { MAX_SLICE_MS, MS_PER_FREE_TURN, type Steps, TimeSlicer } from '../../src/time-slicer.js';

/** Creates a slicer with a manual clock and event loop. */
function manual() {
  let nowMs = 0;
  const turns: (() => void)[] = [];
  const slicer = new TimeSlicer({ monotonic: () => nowMs, nextTurn: (run) => turns.push(run) });
  return {
    slicer,
    takeMs: (ms: number) => {
      nowMs += ms;
    },
    /** Runs one scheduled event-loop turn; returns false if none was scheduled. */
    turn(): boolean {
      const run = turns.shift();
      run?.();
      return run !== undefined;
    },
    /** Runs event-loop turns up to and including the next slice. Returns their number. */
    nextSlice(): number {
      const before = nowMs;
      let count = 0;
      for (; nowMs === before && turns.length > 0; count++) turns.shift()?.();
      return count;
    },
  };
}

type Manual = ReturnType<typeof manual>;

function* stepsOf(
  { takeMs }: Manual,
  steps: { count: number; ms: number; done?: (at: number) => void },
): Steps<string> {
  for (let at = 0; at < steps.count; at++) {
    takeMs(steps.ms);
    steps.done?.(at);
    yield;
  }
  return 'end';
}

describe('time slicer', () => {
  test('returns the value synchronously when one slice suffices', () => {
    const world = manual();
    expect(world.slicer.run(stepsOf(world, { count: 3, ms: 1 }), { client: 'a' })).toBe('end');
  });

  test('interrupts a job after 5 ms and completes it in later event-loop turns', async () => {
    const world = manual();
    let steps = 0;
    const result = world.slicer.run(stepsOf(world, { count: 12, ms: 1, done: () => steps++ }), {
      client: 'a',
    });
    expect(steps).toBe(MAX_SLICE_MS);
    world.nextSlice();
    expect(steps).toBe(2 * MAX_SLICE_MS);
    world.nextSlice();
    expect(steps).toBe(12);
    expect(await result).toBe('end');
  });

  test('leaves 16 turns to others after a full slice, in which Node accepts new connections', () => {
    const world = manual();
    void world.slicer.run(stepsOf(world, { count: 100, ms: 1 }), { client: 'a' });
    expect([world.nextSlice(), world.nextSlice()]).toEqual([16, 16]);
  });

  test('leaves turns to others in proportion to the work, even of a step longer than a slice', () => {
    const world = manual();
    void world.slicer.run(stepsOf(world, { count: 3, ms: 25 }), { client: 'a' });
    expect(world.nextSlice()).toBe(25 / MS_PER_FREE_TURN);
    while (world.turn());
    // After a short job, the next job waits for no turn.
    expect(world.slicer.run(stepsOf(world, { count: 1, ms: 0.1 }), { client: 'a' })).toBe('end');
    expect(world.slicer.run(stepsOf(world, { count: 1, ms: 0.1 }), { client: 'b' })).toBe('end');
    expect([world.turn(), world.turn()]).toEqual([true, false]);
  });

  test('continues jobs that hold a record before it starts others of the same client', () => {
    const world = manual();
    const order: string[] = [];
    const start = (name: string, isHolding: boolean): void => {
      const steps = stepsOf(world, { count: 1, ms: MAX_SLICE_MS, done: () => order.push(name) });
      void world.slicer.run(steps, { client: 'a', isHolding });
    };
    start('first', false);
    for (const name of ['read 1', 'read 2']) start(name, false);
    for (const name of ['held 1', 'held 2']) start(name, true);
    while (world.turn());
    expect(order).toEqual(['first', 'held 1', 'held 2', 'read 1', 'read 2']);
  });

  test('limits all jobs in one event-loop turn to 5 ms in total', () => {
    const world = manual();
    let steps = 0;
    const start = (client: string): unknown =>
      world.slicer.run(stepsOf(world, { count: 4, ms: 1, done: () => steps++ }), { client });
    for (const client of ['a', 'b', 'c', 'd']) void start(client);
    expect(steps).toBe(MAX_SLICE_MS);
  });

  test('serves clients round-robin regardless of their job counts', () => {
    const world = manual();
    const order: string[] = [];
    const start = (client: string, name: string): void => {
      void world.slicer.run(stepsOf(world, { count: 2, ms: MAX_SLICE_MS, done: () => order.push(name) }), {
        client,
      });
    };
    for (const name of ['a1', 'a2', 'a3']) start('a', name);
    start('b', 'b1');
    while (world.turn());
    // The last step of a1 takes no time but uses a slice, so b1 runs before a2.
    expect(order).toEqual(['a1', 'a1', 'b1', 'b1', 'a2', 'a2', 'a3', 'a3']);
  });

  test('stops a job before its next slice when the client disconnects', async () => {
    const world = manual();
    const left = new AbortController();
    let steps = 0;
    const result = world.slicer.run(stepsOf(world, { count: 3, ms: MAX_SLICE_MS, done: () => steps++ }), {
      client: 'a',
      signal: left.signal,
    });
    left.abort(new Error('left'));
    while (world.turn());
    await expect(result).rejects.toThrow('left');
    expect(steps).toBe(1);
  });

  test('rejects a job with the error of a later step, and continues other jobs', async () => {
    const world = manual();
    const failing = world.slicer.run(
      stepsOf(world, {
        count: 3,
        ms: MAX_SLICE_MS,
        done(at) {
          if (at === 1) throw new Error('broken');
        },
      }),
      { client: 'a' },
    );
    const other = world.slicer.run(stepsOf(world, { count: 2, ms: 1 }), { client: 'b' });
    while (world.turn());
    await expect(failing).rejects.toThrow('broken');
    expect(await other).toBe('end');
  });
});
