// An unstorable response still invalidates remote copies of the record, which may be older.
import { describe, expect, test } from 'vitest';
import type { Change } from '../../src/cache/coherence/message.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { TieredStore } from '../../src/cache/tiered-store.js';
import { toBytes } from '../../src/handle/bytes.js';
import { handleRef } from '../../src/handle/handle.js';
import { Resolver } from '../../src/resolver/resolver.js';
import { NOW, entryOf } from '../support/store-contract.js';
import { ExpiringMap } from '../../src/upstream/expiring-map.js';

const HANDLE = handleRef('21.T1/FENCED', false);
const now = (): number => NOW;

/** Starts a resolver with an empty memory and records published changes. */
function start() {
  const bounds = { maxBytes: 1_000_000, found: { maxEntries: 10 }, notFound: { maxEntries: 10 } };
  const memory = new MemoryStore({ bounds, now });
  const changes: Change[] = [];
  const publish = (change: Change): Promise<void> => {
    changes.push(change);
    return Promise.resolve();
  };
  const resolver = new Resolver({
    store: new TieredStore({ memory, coherence: { publish }, fenceLifeMs: 1000, now }),
    memory,
    upstream: { resolve: () => Promise.resolve({ kind: 'found', values: toBytes('[1]'), ttls: [60] }) },
    failures: new ExpiringMap({ ttlMs: 0, maxEntries: 1000, now }),
    ttlBoundsOf: () => ({
      found: { minTtlMs: 0, maxTtlMs: 3_600_000 },
      notFound: { ttlMs: 30_000 },
      staleIfErrorMs: 0,
    }),
    trustedSince: () => 0,
    refreshAheadMinHits: 0,
    staleAfterMs: 1_000_000,
    refOf: (text) => handleRef(text, false),
    now,
    wall: now,
  });
  return { memory, changes, resolver, key: HANDLE.key };
}

describe('unstorable authoritative response', () => {
  test('invalidates remote copies even when no local entry exists', async () => {
    const { memory, changes, resolver, key } = start();
    memory.raiseFence(key, 'elsewhere/1', NOW + 1000);
    await resolver.resolve(HANDLE, { authoritative: true });
    expect(changes).toMatchObject([{ kind: 'forget', key }]);
  });

  test('preserves an identical local entry', async () => {
    const { memory, changes, resolver, key } = start();
    memory.set(key, { ...entryOf('same'), values: toBytes('[1]') }, memory.get(key).ticket);
    memory.raiseFence(key, 'elsewhere/1', NOW + 1000);
    await resolver.resolve(HANDLE, { authoritative: true });
    expect(changes).toEqual([]);
  });

  test('invalidates a different local entry', async () => {
    const { memory, changes, resolver, key } = start();
    memory.set(key, entryOf('other'), memory.get(key).ticket);
    memory.raiseFence(key, 'elsewhere/1', NOW + 1000);
    await resolver.resolve(HANDLE, { authoritative: true });
    expect(changes).toMatchObject([{ kind: 'forget', key }]);
  });
});
