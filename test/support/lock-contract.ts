// What every key lock promises, however many instances it holds for.
import { expect, test } from 'vitest';
import type { KeyLock } from '../../src/cache/lock.js';

/** `make` gives two doors to the same lock: of one process, or of two instances. */
export function testKeyLock(make: () => Promise<[KeyLock, KeyLock]> | [KeyLock, KeyLock]): void {
  test('one work at a time touches a key', async () => {
    const doors = await make();
    let inside = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside--;
    };
    await Promise.all(Array.from({ length: 40 }, (_, at) => doors[at % 2]!('KEY', work)));
    expect([most, inside]).toEqual([1, 0]);
  });

  test('works on different keys do not wait for each other', async () => {
    const [one, other] = await make();
    const open = gate();
    const first = one('KEY', () => open.passed);
    await other('OTHER', () => Promise.resolve());
    open.pass();
    await first;
  });

  test('gives what the work gives, and throws what it throws', async () => {
    const [one, other] = await make();
    expect(await one('KEY', () => Promise.resolve(7))).toBe(7);
    await expect(one('KEY', () => Promise.reject(new Error('work')))).rejects.toThrow('work');
    expect(await other('KEY', () => Promise.resolve(8))).toBe(8);
  });

  test('who waits too long is sent away with 503, and does not hold up those behind', async () => {
    const [one, other] = await make();
    const open = gate();
    const begun = gate();
    const first = one('KEY', () => {
      begun.pass();
      return open.passed;
    });
    await begun.passed;
    await expect(other('KEY', () => Promise.resolve())).rejects.toMatchObject({ code: 'BUSY', status: 503 });
    open.pass();
    await first;
    expect(await other('KEY', () => Promise.resolve('next'))).toBe('next');
  });
}

/** A promise that is kept on call. */
function gate(): { passed: Promise<void>; pass: () => void } {
  let pass = (): void => undefined;
  const passed = new Promise<void>((resolve) => {
    pass = resolve;
  });
  return { passed, pass };
}
