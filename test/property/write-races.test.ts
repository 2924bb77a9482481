// However reads and writes are interleaved, nobody is shown an older record than was acknowledged before.
import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import type { MemoryStore } from '../../src/cache/memory-store.js';
import type { Fence, Store } from '../../src/cache/store.js';
import { type Act, acts, createRaceTrack } from '../support/write-races.js';

const nothing = (): void => undefined;
/** No act of these races purges, and nobody looks at Cache-Status. */
const noPurge = { soften: nothing, sweep: nothing, heard: nothing, accepts: (): boolean => true };
const noFence: Fence = { changed: nothing, unchanged: nothing, unknown: nothing };

function holds(
  replaceStore?: (memory: MemoryStore) => Store<number>,
  chosenActs = acts,
): fc.IAsyncProperty<unknown> {
  const { race } = createRaceTrack(replaceStore);
  return fc.asyncProperty(fc.scheduler(), chosenActs, async (scheduler, chosen) => {
    expect(await race(scheduler, chosen)).toEqual([]);
  });
}

test('a read that begins after an acknowledgement shows that write or a later one', async () => {
  await fc.assert(holds(), { numRuns: Number(process.env['FUZZ_RUNS'] ?? 3000) });
});

describe('the same cannot be said', () => {
  test.each<[what: string, replaceStore: (memory: MemoryStore) => Store<number>, acts?: fc.Arbitrary<Act[]>]>(
    [
      [
        'without fences',
        (memory) => ({
          get: (key) => memory.get(key),
          set: (key, entry, ticket) => memory.set(key, entry, ticket),
          replace: (key, entry, ticket) => memory.replace(key, entry, ticket),
          forget: nothing,
          ...noPurge,
          fence: () => noFence,
        }),
      ],
      [
        'with a cache that forgets after the write, but stores what was loaded before',
        (memory) => ({
          get: (key) => memory.get(key),
          set: (key, entry) => memory.set(key, entry, memory.get(key).ticket),
          replace: (key, entry) => memory.replace(key, entry, memory.get(key).ticket),
          forget: (key) => {
            memory.forget(key);
          },
          ...noPurge,
          fence: (key) => ({
            ...noFence,
            changed: () => {
              memory.forget(key);
            },
          }),
        }),
      ],
      [
        'when a write without an answer is forgotten at once, and no fence stays',
        (memory) => ({
          get: (key) => memory.get(key),
          set: (key, entry, ticket) => memory.set(key, entry, ticket),
          replace: (key, entry, ticket) => memory.replace(key, entry, ticket),
          forget: (key) => {
            memory.forget(key);
          },
          ...noPurge,
          fence: (key) => ({
            ...noFence,
            changed: () => {
              memory.forget(key);
            },
            unknown: () => {
              memory.forget(key);
            },
          }),
        }),
        // Only these three matter here; among all others the order that shows it is a rare one.
        fc.array(fc.constantFrom<Act[]>('late', 'read', 'pass'), { minLength: 4, maxLength: 8 }),
      ],
    ],
  )('%s', async (_what, replaceStore, chosenActs) => {
    const { failed, counterexample } = await fc.check(holds(replaceStore, chosenActs), { numRuns: 3000 });
    expect(failed).toBe(true);
    expect(counterexample).not.toBeNull();
  });
});
