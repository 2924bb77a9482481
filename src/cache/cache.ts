// The cache as one thing: memory alone, or memory before Redis; and since when it can be trusted.
import { type Count, createCounter } from './counters.js';
import { createHearing } from './hearing.js';
import { type KeyLock, type KeyLockOptions, createKeyLock } from './lock.js';
import type { MemoryBounds, MemoryUsage } from './lists.js';
import { type Kept, MemoryStore } from './memory-store.js';
import { readMessage } from './message.js';
import { PeeredMemory, type TellPeers } from './peers.js';
import type { RedisPlace } from './redis-connections.js';
import { RedisLink } from './redis-link.js';
import type { NamespaceOptions } from './redis-namespace.js';
import { RedisStore } from './redis-store.js';
import type { Entry } from './entry.js';
import type { Store } from './store.js';
import { createTrust } from './trust.js';
import { TwoTierStore } from './two-tier-store.js';
import { LeftNames, type Unclaimed, createUnclaimed } from './unclaimed.js';

export interface RedisOptions extends RedisPlace, Pick<NamespaceOptions, 'keyPrefix' | 'upstream'> {
  /** How old an entry in memory may be while the messages of other instances are not heard (ms). */
  lostMaxAgeMs: number;
}

export interface CacheDeps {
  bounds: MemoryBounds;
  redis?: RedisOptions;
  /** How long a write may keep a key from being stored when nobody says how it ended (ms). */
  fenceLifeMs: number;
  /** Longer than any load or write can take (ms). */
  markLifeMs: number;
  /** How long a work waits for its turn on a key (ms). */
  lockWaitMs: number;
  now: () => number;
  /** The other workers of this machine, when there are any. */
  tellPeers?: TellPeers;
  takeTurn?: KeyLockOptions['takeTurn'];
  /** Another instance writes, wrote or forgot the key. */
  onForgotten: (key: string) => void;
  /** No load of a key that begins so is to be joined any more: they were purged, or messages were missed. */
  onSwept: (prefix: string) => void;
  onEvict: (store: MemoryUsage['store']) => void;
  onRedisState: (state: 'up' | 'lost') => void;
  onRedisError: (command: string) => void;
  /** Why Redis is not there. */
  onRedisTrouble: (reason: string) => void;
  onForeignPrefix: NonNullable<NamespaceOptions['onForeign']>;
}

export interface Cache {
  store: Store<unknown>;
  memory: MemoryStore;
  /** Entries from before this moment (ms) may have missed an invalidation. */
  trustedSince: () => number;
  /** To be called when the other workers are heard: what was kept or asked before may have missed a write. */
  joined: () => void;
  /** Does here what another worker did there. */
  hear: (line: string) => void;
  /** What each tier holds of a key; counts as no use. */
  inspect: (key: string) => Promise<Inspected>;
  /** Whether Redis is there, away, or not used. */
  redisState: () => 'up' | 'away' | 'unused';
  /** Counts what names do in a minute, over all instances. */
  count: Count;
  /** Lets one work at a time touch a key, over all instances. */
  lock: KeyLock;
  /** Names that were made and nobody heard of. */
  unclaimed: Unclaimed;
  close: () => Promise<void>;
}

export interface Inspected {
  memory: Kept | undefined;
  redis: Entry | undefined;
}

/** A worker serves before the others know of it: until they do, nothing it keeps counts as fresh. */
export function createCache(deps: CacheDeps): Cache {
  const { distrust, trustedSince, ...tiers } = createTiers(deps);
  let hasJoined = deps.tellPeers === undefined;
  return {
    ...tiers,
    trustedSince: () => (hasJoined ? trustedSince() : Infinity),
    joined() {
      hasJoined = true;
      distrust();
    },
  };
}

interface Tiers extends Omit<Cache, 'joined'> {
  /** What is kept in memory, or on its way, from before this moment may have missed an invalidation. */
  distrust: () => void;
}

function createTiers(deps: CacheDeps): Tiers {
  const { now, redis, bounds, fenceLifeMs, onEvict } = deps;
  const memory = new MemoryStore({ bounds, fenceLifeMs, now, onEvict });
  const near = deps.tellPeers ? new PeeredMemory({ memory, tell: deps.tellPeers, fenceLifeMs, now }) : memory;
  const left = new LeftNames(now);
  const { hear: obey, sweep, distrust } = createHearing({ ...deps, memory, left });
  const names = { left, ...(deps.tellPeers ? { tell: deps.tellPeers } : {}) };
  const turns = { waitMs: deps.lockWaitMs, ...(deps.takeTurn ? { takeTurn: deps.takeTurn } : {}) };
  if (redis === undefined) {
    const lock = createKeyLock(turns);
    const unclaimed = createUnclaimed({ ...names, lock });
    const own = { memory, distrust, hear: obey, lock, unclaimed, count: createCounter({ now }) };
    return { ...own, ...withoutRedis(memory), store: near };
  }
  const trust = createTrust({ now, lostMaxAgeMs: redis.lostMaxAgeMs });
  const hear = (line: string): void => {
    obey(line, (message) => message.number === 0 || shared.enterSweep(message));
  };
  const link: RedisLink = new RedisLink(
    {
      ...redis,
      onProof: trust.proved,
      onError: deps.onRedisError,
      onTrouble: deps.onRedisTrouble,
      onForeign: deps.onForeignPrefix,
      onClaimed: () => {
        shared.disown();
      },
      beforeUp: () => shared.settleDebts(),
      whileUp: () => shared.keepEpoch(),
      onState(state) {
        // Design decision 9: messages missed while Redis was away are assumed to be invalidations.
        if (state === 'up') distrust();
        else shared.onLost();
        trust.redisIs(state);
        deps.onRedisState(state);
      },
    },
    (line) => {
      const message = readMessage(line);
      if (message?.kind !== 'epoch') hear(line);
      else if (shared.enterEpoch(message.epoch)) distrust();
    },
  );
  const shared = new RedisStore(link, { ...deps, onMissedSweep: sweep });
  const lock = createKeyLock({ ...turns, shared: link });
  return {
    store: new TwoTierStore(near, shared),
    memory,
    distrust,
    hear,
    inspect: async (key) => ({ memory: memory.inspect(key), redis: (await shared.get(key)).entry }),
    redisState: () => (link.isUp() ? 'up' : 'away'),
    trustedSince: trust.since,
    count: createCounter({ now, shared: link }),
    lock,
    unclaimed: createUnclaimed({ ...names, lock, shared: link }),
    close: () => link.close(),
  };
}

const withoutRedis = (
  memory: MemoryStore,
): Pick<Cache, 'trustedSince' | 'inspect' | 'redisState' | 'close'> => ({
  trustedSince: () => 0,
  inspect: (key) => Promise.resolve({ memory: memory.inspect(key), redis: undefined }),
  redisState: () => 'unused',
  close: () => Promise.resolve(),
});
