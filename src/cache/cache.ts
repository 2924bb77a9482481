// Creates the cache: memory, Redis as second tier, and coherence with the other instances.
import type { Config } from '../config/schema.js';
import { type ServerConfig, describeServers, maxWriteMs } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { type Deleted, createMessageApplier } from './apply-message.js';
import { type Clock, systemClock } from './clock.js';
import { type Deliver, Hub, type WritesWithout } from './coherence/hub.js';
import { PendingInvalidations } from './coherence/pending-invalidations.js';
import type { Entry } from './entry.js';
import { Member } from './link/member.js';
import type { MemoryBounds, MemoryUsage } from './memory/lru-index.js';
import { type InspectedEntry, MemoryStore } from './memory/memory-store.js';
import { RedisCommands, type RedisCommandsOptions } from './redis/commands.js';
import { addressKey, redisAddress } from './redis/connections.js';
import { remedyOf } from './redis/errors.js';
import { keyPrefixOf } from './redis/namespace.js';
import { RedisStore } from './redis/store.js';
import type { Store } from './store.js';
import { TieredStore, type TieredTicket } from './tiered-store.js';

export interface RedisOptions extends Omit<RedisCommandsOptions, 'onState' | 'onClaimed' | 'clock'> {
  /** Maximum age of a fresh entry in memory while there is no lease (ms). */
  lostMaxAgeMs: number;
  writesWithout: WritesWithout;
}

interface CacheSettings extends Pick<Config, 'cache' | 'redis'> {
  /** Handle servers; instances with the same servers share their entries. */
  servers: readonly ServerConfig[];
}

export interface CacheEvents {
  /** Called when new readers of the key must not join a load in flight. */
  onInvalidated: (key: string) => void;
  /** The same for all keys with the prefix. */
  onBanned: (prefix: string) => void;
  /** Called when a write or an operator deletes entries. */
  onDeleted?: ((deleted: Deleted) => void) | undefined;
}

interface CacheDeps extends CacheEvents {
  bounds: MemoryBounds;
  redis?: RedisOptions | undefined;
  /** Life of a fence (ms): how long a write with an unknown outcome keeps loads of its key from being stored. */
  fenceLifeMs: number;
  now: () => number;
  clock?: Clock | undefined;
  onEvict: (store: MemoryUsage['store']) => void;
  onRedisState: (state: 'up' | 'lost') => void;
}

export interface Cache {
  store: Store<TieredTicket>;
  memory: MemoryStore;
  /** Entries from before this moment (ms) may have missed an invalidation. */
  trustedSince: () => number;
  /** The entry in each tier; does not count as a use. */
  inspect: (key: string) => Promise<Inspection>;
  redisState: () => 'up' | 'away' | 'unused';
  /** Whether reads use Redis now. */
  isRedisReadable: () => boolean;
  /** Whether Redis holds an entry that can be served. */
  holdsRedisEntry: () => Promise<boolean>;
  /** Undefined without Redis. */
  commands: RedisCommands | undefined;
  close: () => Promise<void>;
}

interface Inspection {
  memory: InspectedEntry | undefined;
  redis: Entry | undefined;
}

/** Time after `upstream.writeTimeout` in which the upstream may still carry out a write. */
const FENCE_MARGIN_MS = 15_000;

export function createCache(settings: CacheSettings, context: Context, events: CacheEvents): Cache {
  const { maxBytes, found, notFound } = settings.cache;
  const { log, metrics, clock } = context;
  const cache = assembleCache({
    ...events,
    bounds: { maxBytes, found, notFound },
    redis: redisOptions(settings, context),
    fenceLifeMs: maxWriteMs(settings.servers) + FENCE_MARGIN_MS,
    now: clock.now,
    onEvict: (store) => {
      metrics.countEviction(store);
    },
    onRedisState(state) {
      metrics.setRedisState(state);
      if (state === 'up') log.info('redis connected');
      else log.warn('redis unavailable, answering from memory and upstream');
    },
  });
  metrics.registerStoreUsage(() => cache.memory.usage());
  return cache;
}

/** Undefined if no Redis is configured. */
function redisOptions(
  { redis, servers }: CacheSettings,
  { log, metrics }: Context,
): RedisOptions | undefined {
  const address = redisAddress(redis);
  if (address === undefined) return undefined;
  metrics.setRedisState('away');
  const { keyPrefix, lostMaxAgeMs, writesWithout } = redis;
  return {
    ...address,
    keyPrefix: keyPrefixOf(servers, redis),
    // A derived prefix already identifies the upstream and needs no owner.
    upstream: keyPrefix && describeServers(servers),
    lostMaxAgeMs,
    writesWithout,
    onError: (command) => {
      metrics.countRedisError(command);
    },
    onTrouble: (reason) => {
      log.warn({ reason, remedy: remedyOf(reason, addressKey(address)) }, 'redis error');
    },
    onEvictionPolicy: (policy) => {
      const remedy = 'set maxmemory-policy to noeviction or volatile-lru';
      log.warn({ policy, remedy }, 'redis may evict locks or coordination keys');
    },
    onForeign: (found) => {
      log.warn(found, 'redis.keyPrefix belongs to another upstream, using a separate prefix');
    },
  };
}

export function assembleCache(deps: CacheDeps): Cache {
  const { now, clock, bounds, onEvict, fenceLifeMs } = deps;
  const memory = new MemoryStore({ bounds, now, onEvict });
  const { apply, bans } = createMessageApplier({ ...deps, memory });
  const onState = createStateReport(deps.onRedisState, () => isUp());
  const { hub, commands, close } = createInstance({ redis: deps.redis, now, clock, onState, deliver: apply });
  const isUp = (): boolean => commands !== undefined && commands.isUp() && hub.isLinked();
  const redis = commands && new RedisStore({ commands, bans, isLinked: () => hub.isLinked(), now });
  return {
    store: new TieredStore({
      memory,
      coherence: hub,
      redis,
      fenceLifeMs,
      lostMaxAgeMs: deps.redis?.lostMaxAgeMs,
      now,
    }),
    memory,
    trustedSince: () => hub.trustedSince(),
    inspect: async (key) => ({ memory: memory.inspect(key), redis: (await redis?.get(key))?.entry }),
    redisState: () => (commands === undefined ? 'unused' : isUp() ? 'up' : 'away'),
    isRedisReadable: () => redis?.isReadable() === true,
    holdsRedisEntry: async () => (await redis?.holdsEntry()) === true,
    commands,
    close,
  };
}

/** Calls `onRedisState` when Redis comes up or is lost, but not before the first contact. */
function createStateReport(onRedisState: CacheDeps['onRedisState'], isUpNow: () => boolean): () => void {
  let wasUp: boolean | undefined;
  return () => {
    const isUp = isUpNow();
    if (isUp === wasUp) return;
    if (isUp || wasUp === true) onRedisState(isUp ? 'up' : 'lost');
    wasUp = isUp;
  };
}

interface InstanceDeps extends Pick<CacheDeps, 'redis' | 'now' | 'clock'> {
  deliver: Deliver;
  /** Called when the state of Redis or of the lease may have changed. */
  onState: () => void;
}

export interface Instance {
  hub: Hub;
  commands?: RedisCommands;
  close: () => Promise<void>;
}

/** The coherence of this instance: the hub, the commands and the membership. */
export function createInstance({
  redis,
  deliver,
  onState,
  now,
  clock = systemClock,
}: InstanceDeps): Instance {
  if (redis === undefined) {
    return { hub: new Hub({ now, deliver }), close: () => Promise.resolve() };
  }
  const pending = new PendingInvalidations();
  const commands: RedisCommands = new RedisCommands({
    ...redis,
    clock,
    // Entries under a prefix without an owner may belong to another upstream.
    onClaimed: () => {
      pending.addAll();
    },
    onState(isUp) {
      if (isUp) void member.renewNow();
      onState();
    },
  });
  const member = new Member({ commands, clock, pending, deliver, onRenewed: onState });
  const { lostMaxAgeMs, writesWithout } = redis;
  const hub = new Hub({ now, deliver, remote: { member, pending, lostMaxAgeMs, writesWithout } });
  return {
    hub,
    commands,
    async close() {
      await member.close();
      await commands.close();
    },
  };
}
