// Creates a resolver without Redis and without a Handle server, whose loads are a function of the test.
import { partial } from './partial.js';
import type { Change } from '../../src/cache/coherence/message.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { TieredStore } from '../../src/cache/tiered-store.js';
import { handleRef } from '../../src/handle/handle.js';
import type { Outcome } from '../../src/handle/outcome.js';
import { Resolver } from '../../src/resolver/resolver.js';

interface LoneParts {
  now: () => number;
  load: () => Promise<Outcome>;
  publish?: (change: Change) => Promise<void>;
  /** The memory of the store; by default the resolver reads the same memory. */
  stored?: MemoryStore;
  trustedSince?: () => number;
  staleIfErrorMs?: number;
}

export const startMemory = (now: () => number): MemoryStore =>
  new MemoryStore({
    bounds: { maxBytes: 1_000_000, found: { maxEntries: 10 }, notFound: { maxEntries: 10 } },
    now,
  });

export function createLoneResolver({
  now,
  load,
  publish = () => Promise.resolve(),
  stored,
  trustedSince = () => 0,
  staleIfErrorMs = 0,
}: LoneParts): { resolver: Resolver; memory: MemoryStore } {
  const memory = startMemory(now);
  const resolver = new Resolver({
    store: new TieredStore({
      memory: stored ?? memory,
      coherence: partial({ publish }),
      fenceLifeMs: 1000,
      now,
    }),
    memory,
    upstream: { resolve: load },
    retryAfterMs: 0,
    ttlBoundsOf: () => ({
      found: { minTtlMs: 0, maxTtlMs: 3_600_000 },
      notFound: { ttlMs: 30_000 },
      staleIfErrorMs,
    }),
    trustedSince,
    refreshAheadMinHits: 0,
    staleAfterMs: 1_000_000,
    refOf: (text) => handleRef(text, false),
    now,
    wall: now,
  });
  return { resolver, memory };
}
