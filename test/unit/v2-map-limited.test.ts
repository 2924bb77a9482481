import { describe, expect, test } from 'vitest';
import { mapLimited } from '../../src/v2/collection.js';

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('bounded-concurrency mapping', () => {
  test('runs at most the allowed number of tasks and preserves their order', async () => {
    let running = 0;
    let most = 0;
    const work = async (item: number): Promise<number> => {
      most = Math.max(most, ++running);
      for (let turns = item % 3; turns >= 0; turns--) await soon();
      running--;
      return item * 2;
    };
    const items = Array.from({ length: 20 }, (_, at) => at);
    expect(await mapLimited(items, 4, work)).toEqual(items.map((item) => item * 2));
    expect(most).toBe(4);
  });

  test('starts no task after a failure', async () => {
    const begun: number[] = [];
    const work = async (item: number): Promise<void> => {
      begun.push(item);
      await soon();
      if (item === 1) throw new Error('one failed');
      await soon();
    };
    await expect(mapLimited([0, 1, 2, 3, 4, 5], 2, work)).rejects.toThrow('one failed');
    await soon();
    await soon();
    expect(begun).toEqual([0, 1]);
  });

  test('returns an empty list for an empty list', async () => {
    expect(await mapLimited([], 4, () => Promise.resolve(1))).toEqual([]);
  });
});
