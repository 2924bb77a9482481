// The lock of one process.
import { describe, expect, test } from 'vitest';
import { createKeyLock } from '../../src/coordination/key-lock.js';
import { testKeyLock } from '../support/lock-contract.js';

describe('a lock within one process', () => {
  testKeyLock((waitMs) => {
    const lock = createKeyLock({ waitMs });
    return [lock, lock];
  });

  test('runs works in the order of their arrival', async () => {
    const lock = createKeyLock({ waitMs: 1000 });
    const order: number[] = [];
    await Promise.all(
      [1, 2, 3, 4].map((at) =>
        lock('KEY', async () => {
          await Promise.resolve();
          order.push(at);
        }),
      ),
    );
    expect(order).toEqual([1, 2, 3, 4]);
  });

  test('still holds within the process while Redis is unavailable', async () => {
    const away = { keyPrefix: 't:', run: () => Promise.resolve(undefined) };
    const lock = createKeyLock({ waitMs: 1000, shared: away });
    let inside = 0;
    const work = async (): Promise<number> => {
      const now = ++inside;
      await new Promise((resolve) => setImmediate(resolve));
      inside--;
      return now;
    };
    expect(await Promise.all([lock('KEY', work), lock('KEY', work), lock('KEY', work)])).toEqual([1, 1, 1]);
  });
});
