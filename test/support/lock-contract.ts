// The contract of a key lock, for one process and for several instances.
import { expect, test } from 'vitest';
import type { KeyLock } from '../../src/coordination/key-lock.js';

/** Creates two handles of the same lock: in one process, or in two instances. */
export type MakeLocks = (waitMs: number) => Promise<[KeyLock, KeyLock]> | [KeyLock, KeyLock];

/** Longer than any test: on a busy machine forty grants may take seconds. */
const PATIENT_MS = 60_000;
const SHORT_MS = 100;

export function testKeyLock(make: MakeLocks): void {
  test('one work at a time runs for a key', async () => {
    const locks = await make(PATIENT_MS);
    let inside = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside--;
    };
    await Promise.all(Array.from({ length: 40 }, (_, at) => locks[at % 2]!('KEY', work)));
    expect([most, inside]).toEqual([1, 0]);
  });

  test('works on different keys do not wait for each other', async () => {
    const [one, other] = await make(PATIENT_MS);
    const open = gate();
    const first = one('KEY', () => open.passed);
    await other('OTHER', () => Promise.resolve());
    open.pass();
    await first;
  });

  test('returns the result of the work, and throws its error', async () => {
    const [one, other] = await make(PATIENT_MS);
    expect(await one('KEY', () => Promise.resolve(7))).toBe(7);
    await expect(one('KEY', () => Promise.reject(new Error('work')))).rejects.toThrow('work');
    expect(await other('KEY', () => Promise.resolve(8))).toBe(8);
  });

  test('a caller that waits too long gets 503, and does not delay the next one', async () => {
    const [one, other] = await make(SHORT_MS);
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

/** A promise that is resolved by a call. */
export function gate(): { passed: Promise<void>; pass: () => void } {
  let pass = (): void => undefined;
  const passed = new Promise<void>((resolve) => {
    pass = resolve;
  });
  return { passed, pass };
}
