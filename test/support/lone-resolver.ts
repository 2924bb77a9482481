// Creates a resolver without Redis and without a Handle server, whose loads are a function of the test.
import { partial } from './partial.js';
import { systemClock } from '../../src/clock.js';
import type { Change } from '../../src/cache/coherence/message.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { TieredStore } from '../../src/cache/tiered-store.js';
import type { Live } from '../../src/config/live.js';
import type { Config } from '../../src/config/schema.js';
import type { Context } from '../../src/context.js';
import { handleRef } from '../../src/handle/handle.js';
import type { Outcome } from '../../src/handle/outcome.js';
import { createHooks } from '../../src/hooks.js';
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

/** `minHits`: hits from which an entry is refreshed ahead; 0 for none. */
export const resolverSettings = (minHits: number): Live<Config> =>
  partial({
    current: {
      upstream: { retryAfterMs: 0, staleAfterMs: 1_000_000 },
      cache: {
        found: { minTtlMs: 0, maxTtlMs: 3_600_000 },
        notFound: { ttlMs: 30_000 },
        refreshAhead: { minHits },
      },
    },
  });

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
  const store = new TieredStore({
    memory: stored ?? memory,
    hub: partial({ publish }),
    fenceLifeMs: 1000,
    now,
  });
  const context = partial<Context>({ clock: { ...systemClock, now, wall: now }, hooks: createHooks() });
  const resolver = new Resolver(resolverSettings(0), context, {
    cache: partial({ store, memory, trustedSince }),
    upstream: { resolve: load, preferPrimary: undefined },
    staleIfErrorMs: () => staleIfErrorMs,
    isServed: () => true,
    slicer: partial({}),
    refOf: (text) => handleRef(text, false),
  });
  return { resolver, memory };
}
