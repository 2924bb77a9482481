// The coherence guarantee in seeded worlds holds under all faults.
import { describe, expect, test } from 'vitest';
import { UPSTREAM_FAULTS } from './fault-driver.js';
import { type RunResult, WITH_FRONT, run } from './run.js';

/** One with plugins, one with low limits. */
const SEEDS = [1, 4];

function describeFailure({ seed, violation, lines }: RunResult): string {
  return `seed ${seed}: ${violation?.message ?? ''}\n${lines.join('\n')}`;
}

describe('simulated deployment', () => {
  test('is reproduced by the same seed', async () => {
    const first = await run(1, { seconds: 20 });
    expect(first.counts.writes).toBeGreaterThan(10);
    expect(await run(1, { seconds: 20 })).toEqual(first);
  });

  test.each(SEEDS)('stays coherent under the faults of seed %i', async (seed) => {
    const result = await run(seed, { keptLines: 100 });
    expect(result.violation, describeFailure(result)).toBeUndefined();
  });

  test('with a cache in front serves no older record after an acknowledgement', async () => {
    const result = await run(1, { ...WITH_FRONT, keptLines: 100 });
    expect(result.counts.frontHits).toBeGreaterThan(100);
    expect(result.violation, describeFailure(result)).toBeUndefined();
  });

  test('serves nothing from before an acknowledged write, not even as stale, while only the Handle server fails', async () => {
    const result = await run(1, { faults: UPSTREAM_FAULTS, keptLines: 100 });
    expect(result.counts.staleAnswers).toBeGreaterThan(10);
    expect(result.violation, describeFailure(result)).toBeUndefined();
  });
});
