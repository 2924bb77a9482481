// Serial flight: one run at a time, and callers during a run share the next one.
import { expect, it } from 'vitest';
import { SerialFlight } from '../../src/resolver/single-flight.js';

/** Starts runs that end when they are told to; each counts what had been noted before its start. */
function startRuns() {
  const flight = new SerialFlight<number>();
  const ends: (() => void)[] = [];
  let noted = 0;
  const join = (): Promise<number> => {
    noted++;
    return flight.join('key', () => {
      const known = noted;
      return new Promise((resolve) =>
        ends.push(() => {
          resolve(known);
        }),
      );
    });
  };
  return { join, ends };
}

it('starts the first run in the call, and shares the second among all callers during the first', async () => {
  const { join, ends } = startRuns();
  const first = join();
  const others = [join(), join()];
  expect(ends).toHaveLength(1);
  ends[0]?.();
  expect(await first).toBe(1);
  await expect.poll(() => ends.length).toBe(2);
  ends[1]?.();
  expect(await Promise.all(others)).toEqual([3, 3]);
});

it('does not add a caller to a run that has begun, whether it is the first or a later one', async () => {
  const { join, ends } = startRuns();
  const runs = [join(), join()];
  ends[0]?.();
  await expect.poll(() => ends.length).toBe(2);
  runs.push(join());
  expect(ends).toHaveLength(2);
  ends[1]?.();
  await expect.poll(() => ends.length).toBe(3);
  ends[2]?.();
  expect(await Promise.all(runs)).toEqual([1, 2, 3]);
});

it('starts the next run after a run that fails', async () => {
  const flight = new SerialFlight<string>();
  const failed = flight.join('key', () => Promise.reject(new Error('first')));
  const next = flight.join('key', () => Promise.resolve('second'));
  await expect(failed).rejects.toThrow('first');
  expect(await next).toBe('second');
  expect(await flight.join('key', () => Promise.resolve('third'))).toBe('third');
});
