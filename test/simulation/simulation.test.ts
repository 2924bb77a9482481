// The promise, over worlds that a seed makes.
import { describe, expect, test } from 'vitest';
import { run } from './run.js';

describe('a simulated deployment', () => {
  test('does the same again with the same seed', async () => {
    const first = await run(1, { seconds: 20 });
    expect(first.counts.writes).toBeGreaterThan(10);
    expect(await run(1, { seconds: 20 })).toEqual(first);
  });
});
