import { describe, expect, onTestFinished, test } from 'vitest';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { TieredStore } from '../../src/cache/tiered-store.js';
import { ServiceError } from '../../src/errors.js';
import { toBytes } from '../../src/handle/bytes.js';
import { handleRef } from '../../src/handle/handle.js';
import { Resolver } from '../../src/resolver/resolver.js';
import { settled } from '../support/manual-clock.js';
import { NOW, entryOf } from '../support/store-contract.js';
import { ExpiringMap } from '../../src/upstream/expiring-map.js';

const HANDLE = handleRef('21.T1/unkept', false);
const now = (): number => NOW;

/** Starts a resolver with a stale record whose new version cannot be stored. */
function start(): Resolver<unknown> {
  const bounds = { maxBytes: 1_000_000, found: { maxEntries: 10 }, notFound: { maxEntries: 10 } };
  const memory = new MemoryStore({ bounds, now });
  const publish = (): Promise<void> => Promise.reject(new ServiceError('INVALIDATION_UNCONFIRMED'));
  const resolver = new Resolver({
    store: new TieredStore({ memory, coherence: { publish }, fenceLifeMs: 1000, now }),
    memory,
    upstream: { resolve: () => Promise.resolve({ kind: 'found', values: toBytes('[]'), ttls: [0] }) },
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
  const { key } = HANDLE;
  memory.set(key, entryOf('old', { staleAt: NOW - 1 }), memory.get(key).ticket);
  return resolver;
}

describe('read with an unconfirmed invalidation (redis.disconnectedWrites: reject)', () => {
  test('succeeds for an ordinary caller, and causes no unhandled rejection', async () => {
    const uncaught: unknown[] = [];
    const note = (error: unknown): number => uncaught.push(error);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    expect(await start().resolve(HANDLE, { authoritative: false })).toMatchObject({ from: 'upstream' });
    await settled();
    expect(uncaught).toEqual([]);
  });

  test('fails with INVALIDATION_UNCONFIRMED for a caller that requires an authoritative response', async () => {
    await expect(start().resolve(HANDLE, { authoritative: true })).rejects.toMatchObject({
      code: 'INVALIDATION_UNCONFIRMED',
    });
  });
});
