// Workers of one machine: what one of them fences holds in those that start later, too.
import { expect, test } from 'vitest';
import { type Cache, createCache } from '../../src/cache/cache.js';
import { NOW, entryOf } from '../support/store-contract.js';

const FENCE_LIFE_MS = 1000;
const nothing = (): void => undefined;

/** Workers that hear each other from the moment they start. */
function createMachine(): { start: () => Cache; pass: (ms: number) => void } {
  let now = NOW;
  const workers: Cache[] = [];
  const start = (): Cache => {
    const worker: Cache = createCache({
      bounds: { maxBytes: 1_000_000, found: { maxEntries: 100 }, notFound: { maxEntries: 100 } },
      fenceLifeMs: FENCE_LIFE_MS,
      markLifeMs: 2000,
      lockWaitMs: 100,
      now: () => now,
      tellPeers: (line) => {
        for (const other of workers) if (other !== worker) other.hear(line);
        return Promise.resolve();
      },
      onForgotten: nothing,
      onSwept: nothing,
      onEvict: nothing,
      onRedisState: nothing,
      onRedisError: nothing,
      onForeignPrefix: nothing,
      onRedisTrouble: nothing,
    });
    workers.push(worker);
    return worker;
  };
  return {
    start,
    pass: (ms) => {
      now += ms;
    },
  };
}

test('a worker that starts during a write of unknown end does not keep what it loaded meanwhile', async () => {
  const machine = createMachine();
  const writer = machine.start();
  const fence = await writer.store.fence('KEY');
  const late = machine.start();
  const { ticket } = await late.store.get('KEY');
  await late.store.set('KEY', entryOf('old'), ticket);
  machine.pass(FENCE_LIFE_MS / 2);
  await fence.unknown();
  expect(late.memory.peek('KEY')?.staleAt ?? 0).toBeLessThanOrEqual(NOW + FENCE_LIFE_MS / 2);
  machine.pass(FENCE_LIFE_MS);
  expect(late.memory.peek('KEY')?.staleAt ?? 0).toBeLessThanOrEqual(NOW + 1.5 * FENCE_LIFE_MS);
});

test('a worker that the others do not know of yet takes nothing it keeps for fresh', async () => {
  const worker = createMachine().start();
  const { ticket } = await worker.store.get('KEY');
  expect(worker.trustedSince()).toBe(Infinity);
  worker.joined();
  expect(worker.trustedSince()).toBe(0);
  expect(await worker.store.set('KEY', entryOf('old'), ticket)).toBe(false);
});
