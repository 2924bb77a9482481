// A stale entry may be served even if the lease of the instance changes during the failing load.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import { toBytes } from '../../src/handle/bytes.js';
import { handleRef } from '../../src/handle/handle.js';
import type { Outcome } from '../../src/handle/outcome.js';
import { gate } from '../support/gate.js';
import { createLoneResolver, startMemory } from '../support/lone-resolver.js';

const NOW = 1_000_000;
const now = (): number => NOW;
const HANDLE = handleRef('21.T1/kept', false);

function start() {
  const world = { trustedSince: 0, load: (): Promise<Outcome> => Promise.resolve(found) };
  const found: Outcome = { kind: 'found', values: toBytes('[]'), ttls: [86_400] };
  const { resolver, memory } = createLoneResolver({
    now,
    load: () => world.load(),
    // The store has a separate memory, so its entries are not in `memory`.
    stored: startMemory(now),
    trustedSince: () => world.trustedSince,
    staleIfErrorMs: 86_400_000,
  });
  return { world, resolver, memory };
}

describe('stale entry while the upstream fails', () => {
  test.each([0, 1, 2, 3, 4, 5, 6])(
    'is served when a lease starts %i steps after the request',
    async (steps) => {
      const { world, resolver } = start();
      await resolver.resolve(HANDLE, { authoritative: false });
      world.load = () => Promise.reject(new ServiceError('UPSTREAM_FAILED'));
      world.trustedSince = NOW + 1;
      const resolving = resolver.resolve(HANDLE, { authoritative: false });
      for (let step = 0; step < steps; step++) await Promise.resolve();
      world.trustedSince = 0;
      expect(await resolving).toMatchObject({ kind: 'entry', entry: { kind: 'found' } });
    },
  );

  test('is served when a different request stored it before the load failed', async () => {
    const { world, resolver, memory } = start();
    let fail: (failure: Error) => void = () => undefined;
    world.load = () => new Promise((_resolve, reject) => (fail = reject));
    const resolving = resolver.resolve(HANDLE, { authoritative: false });
    await nextTurn();
    const times = { requestedAt: NOW, staleAt: NOW + 1000, deleteAt: NOW + 2000 };
    memory.set(HANDLE.key, { kind: 'found', values: toBytes('[]'), message: '', ...times }, NOW);
    fail(new ServiceError('UPSTREAM_FAILED'));
    expect(await resolving).toMatchObject({ kind: 'entry', entry: { kind: 'found' } });
  });
});

test('a load in flight that may have missed a change is not joined', async () => {
  const { world, resolver } = start();
  const { opened, open } = gate();
  const [found, loads] = [world.load(), [] as number[]];
  world.load = () => {
    loads.push(world.trustedSince);
    return opened.then(() => found);
  };
  const read = () => resolver.resolve(HANDLE, { authoritative: false });
  const reads = [read(), read()];
  world.trustedSince = NOW + 1;
  reads.push(read());
  open();
  await Promise.all(reads);
  expect(loads).toEqual([0, NOW + 1]);
});

describe('entry stored between the lookups in memory and in the store', () => {
  test('is reported as a memory hit', async () => {
    const { resolver } = start();
    await resolver.resolve(HANDLE, { authoritative: false });
    expect(await resolver.resolve(HANDLE, { authoritative: false })).toMatchObject({ from: 'memory' });
  });
});
