// The simulator finds each frequent mutation of the coherence code, with the seed that is known to find it.
import { describe, expect, test } from 'vitest';
import { LATE_COMMAND_DISTRUSTS_ALL, MUTATIONS, type Mutation } from './mutations.js';
import { PLUGIN_MUTATIONS } from './plugin-mutations.js';
import { PLAIN, type RunResult, run } from './run.js';

const FREQUENT = Object.entries({ ...MUTATIONS, ...PLUGIN_MUTATIONS }).filter(
  ([, { isRare }]) => isRare === undefined,
);

async function withMutation<T>({ apply }: Mutation, work: () => Promise<T>): Promise<T> {
  const restore = apply();
  try {
    return await work();
  } finally {
    restore();
  }
}

/** Runs the seed that is known to find the mutation. */
function findViolation({ faults, world, seed = 1 }: Mutation): Promise<RunResult> {
  return run(seed, { ...(faults && { faults }), world: { ...PLAIN, ...world } });
}

describe('simulator', () => {
  test.each(FREQUENT)('detects that %s', async (_name, mutation) => {
    const found = await withMutation(mutation, () => findViolation(mutation));
    expect(found.violation).toBeDefined();
  });

  test('detects the cost of marking all entries stale after one late command', async () => {
    const { faults } = LATE_COMMAND_DISTRUSTS_ALL;
    const options = { seconds: 10, ...(faults && { faults }), world: PLAIN };
    // Several seeds are needed because the cost depends on the event order: 1.2 to 2.1 times as many reads.
    const readsOf = async (): Promise<number> => {
      let reads = 0;
      for (const seed of [3, 8]) reads += (await run(seed, options)).counts.upstreamReads;
      return reads;
    };
    const reads = await readsOf();
    expect(await withMutation(LATE_COMMAND_DISTRUSTS_ALL, readsOf)).toBeGreaterThan(1.1 * reads);
  });
});
