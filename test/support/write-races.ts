// Runs readers and writers of one handle in an order chosen by fast-check, on one instance without a network.
import type { Fence } from '../../src/cache/store.js';
import { partial } from './partial.js';
import { systemClock } from '../../src/clock.js';
import fc from 'fast-check';
import { createMessageApplier } from '../../src/cache/apply-message.js';
import { Hub, type Membership } from '../../src/cache/link/hub.js';
import { PendingInvalidations } from '../../src/cache/coherence/pending-invalidations.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { TieredStore } from '../../src/cache/tiered-store.js';
import { toText } from '../../src/handle/bytes.js';
import { type HandleRef, handleRef } from '../../src/handle/handle.js';
import { createHooks } from '../../src/hooks.js';
import { type PurgeTarget, Resolver } from '../../src/resolver/resolver.js';
import type { Store } from './store-contract.js';
import { resolverSettings } from './lone-resolver.js';
import { RaceUpstream, type Step } from './race-upstream.js';

const FENCE_LIFE_MS = 45_000;

/** The actions. In `late`, the writer times out and the upstream executes the write afterwards. */
export const ACTS = [
  'read',
  'failing read',
  'authoritative',
  'silent',
  'write',
  'refused',
  'lost',
  'late',
  'pass',
  'purge',
  'purge prefix',
  'soft purge',
  'soft purge prefix',
] as const;
export type Act = (typeof ACTS)[number];

export const acts: fc.Arbitrary<Act[]> = fc.array(fc.constantFrom(...ACTS, 'read', 'read', 'write'), {
  minLength: 3,
  maxLength: 12,
});

/** A read that returned a version older than the version acknowledged before the read started. */
export interface Outdated {
  shown: number;
  acknowledged: number;
}

/** Runs races on one instance. */
export interface RaceTrack {
  /** Runs all acts concurrently, and resolves with the outdated reads. */
  race: (scheduler: fc.Scheduler, acts: Act[]) => Promise<Outdated[]>;
}

/** Creates the store; `hub` reports changes to memory. */
export type MakeStore = (tiers: { memory: MemoryStore; hub: Hub; now: () => number }) => Store;

const tiered: MakeStore = (tiers) => new TieredStore({ ...tiers, fenceLifeMs: FENCE_LIFE_MS });

export function createRaceTrack(): RaceTrack {
  return createTrackWith(tiered);
}

/** Creates a track with a substitute for the real store. */
export function createTrackWith(makeStore: MakeStore): RaceTrack {
  let now = 1_000_000;
  let races = 0;
  let upstream = new RaceUpstream(() => Promise.resolve());
  const memory = new MemoryStore({
    bounds: { maxBytes: 1_000_000, found: { maxEntries: 1000 }, notFound: { maxEntries: 10 } },
    now: () => now,
  });
  const hooks = createHooks();
  const { apply } = createMessageApplier(memory, hooks);
  let seq = 0;
  // Redis publishes a change some time after it was sent, and other instances acknowledge it later.
  const member: Membership = {
    id: 'me',
    isJoining: () => false,
    pauses: partial({ uninterruptedMs: () => Infinity }),
    leaseLeftMs: () => 1000,
    async publish() {
      await upstream.step('a change is published');
      const acknowledged = upstream.step('a change travels').then(() => true);
      return { seq: ++seq, isStored: false, acknowledged };
    },
    waitForReturn: () => Promise.resolve(false),
  };
  const pending = new PendingInvalidations();
  const remote = { member, pending, disconnectedWrites: 'wait', disconnectedMaxAgeMs: 0 } as const;
  const hub = new Hub({ now: () => now, deliver: apply, remote });
  const clock = { ...systemClock, now: () => now, wall: () => now };
  const store = makeStore({ memory, hub, now: () => now });
  const resolver = new Resolver(resolverSettings(1), partial({ clock, hooks }), {
    cache: partial({ store, memory, trustedSince: () => hub.trustedSince() }),
    upstream: { resolve: () => upstream.load(), preferPrimary: undefined },
    staleIfErrorMs: () => 86_400_000,
    isServed: () => true,
    slicer: partial({}),
    refOf: (text) => handleRef(text, false),
  });

  async function race(scheduler: fc.Scheduler, chosen: Act[]): Promise<Outdated[]> {
    const step: Step = (label) => scheduler.schedule(Promise.resolve(), label);
    upstream = new RaceUpstream(step);
    const pass = (): void => {
      now += FENCE_LIFE_MS;
    };
    const actors = createActors({
      resolver,
      store,
      upstream,
      step,
      pass,
      handle: handleRef(`21.T1/${++races}`, false),
    });
    const done = chosen.map(async (act) => {
      await step(act);
      await actors.deeds[act]();
    });
    await scheduler.waitFor(Promise.all(done));
    await scheduler.waitFor(actors.deeds.read());
    return actors.outdated;
  }

  return { race };
}

interface Stage {
  resolver: Pick<Resolver, 'resolve' | 'purge'>;
  store: Pick<TieredStore, 'fence'>;
  upstream: RaceUpstream;
  step: Step;
  /** Advances the clock by the lifetime of a fence. */
  pass: () => void;
  handle: HandleRef;
}

function createActors({ resolver, store, upstream, step, pass, handle }: Stage): {
  deeds: Record<Act, () => Promise<void>>;
  outdated: Outdated[];
} {
  let acknowledged = 0;
  /** Number of the newest write whose fence has expired. */
  let settled = 0;
  let carriedOut = 0;
  let stillToCome = 0;
  const outdated: Outdated[] = [];

  async function read(authoritative: boolean): Promise<void> {
    const before = { acknowledged, settled };
    const resolution = await resolver.resolve(handle, { authoritative }).catch(() => undefined);
    if (resolution?.kind !== 'entry') return;
    const shown = Number(toText(resolution.entry.values));
    // After an unacknowledged write, an older record may be served stale while the upstream fails.
    const least = resolution.stale ? before.acknowledged : Math.max(before.acknowledged, before.settled);
    if (shown < least) outdated.push({ shown, acknowledged: least });
    // After an authoritative response, no reader may get an older record.
    if (authoritative) acknowledged = Math.max(acknowledged, shown);
  }

  async function write(carryOut: (fence: Fence) => Promise<void>): Promise<void> {
    const fence = await store.fence(handle.key);
    await step('the write travels');
    await carryOut(fence);
  }

  /** Executes a write with an unknown outcome. */
  function carry(carryOut: (fence: Fence) => Promise<void>): Promise<void> {
    stillToCome++;
    return write(carryOut);
  }

  /** Purges a record that was changed outside the proxy. */
  async function purge(target: PurgeTarget, isSoft: boolean): Promise<void> {
    const written = ++upstream.record;
    await step('the purge travels');
    await resolver.purge(target, { isSoft });
    if (isSoft) settled = Math.max(settled, written);
    else acknowledged = Math.max(acknowledged, written);
  }
  const prefix = handle.text.slice(0, -1);

  const deeds: Record<Act, () => Promise<void>> = {
    read: () => read(false),
    authoritative: () => read(true),
    // A write that bypasses the proxy; only an authoritative read finds it.
    silent: () => {
      upstream.record++;
      return Promise.resolve();
    },
    'failing read': () => {
      upstream.failures++;
      return read(false);
    },
    write: () =>
      write(async (fence) => {
        const written = ++upstream.record;
        await step('its answer travels');
        await fence.changed();
        acknowledged = Math.max(acknowledged, written);
      }),
    refused: () =>
      write(async (fence) => {
        await step('its refusal travels');
        await fence.unchanged();
      }),
    lost: () =>
      carry(async (fence) => {
        carriedOut = ++upstream.record;
        stillToCome--;
        await step('its answer is lost');
        await fence.unknown();
      }),
    late: () =>
      carry(async (fence) => {
        await fence.unknown();
        await step('the upstream takes its time');
        carriedOut = ++upstream.record;
        stillToCome--;
      }),
    purge: () => purge({ handle }, false),
    'purge prefix': () => purge({ prefix }, false),
    'soft purge': () => purge({ handle }, true),
    'soft purge prefix': () => purge({ prefix }, true),
    // A fence outlives a write plus a load: when it expires, its write has been executed, and no earlier load
    // is in flight.
    pass: () => {
      const isTooSoon = stillToCome > 0 || [...upstream.underWay].some(({ record }) => record < carriedOut);
      if (!isTooSoon) {
        pass();
        settled = Math.max(settled, carriedOut);
      }
      return Promise.resolve();
    },
  };
  return { deeds, outdated };
}
