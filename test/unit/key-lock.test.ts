// The lock within one process.
import { describe, expect, test } from 'vitest';
import { createKeyLock, testKeyLock } from '../support/lock-contract.js';

describe('key lock within one process', () => {
  testKeyLock((waitMs) => {
    const lock = createKeyLock({ waitMs });
    return [lock, lock];
  });

  test('runs tasks in order of arrival', async () => {
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
});
