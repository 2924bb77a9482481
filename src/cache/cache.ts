// Creates the cache: memory, Redis as the second tier, and coherence with the other instances.
import type { Config } from '../config/schema.js';
import { type ServerConfig, describeUpstream, maxWriteMs } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { createMessageApplier } from './apply-message.js';
import { type Clock, systemClock } from '../clock.js';
import { type Deliver } from './coherence/message.js';
import { PendingInvalidations } from './coherence/pending-invalidations.js';
import type { Entry } from './entry.js';
import { type DisconnectedWrites, Hub } from './link/hub.js';
import { Member } from './link/member.js';
import type { ListName, MemoryBounds } from './memory/lru-index.js';
import { type InspectedEntry, MemoryStore } from './memory/memory-store.js';
import { RedisCommands, type RedisCommandsOptions } from './redis/commands.js';
import { addressKey, redisAddress } from './redis/connections.js';
import { EVICTION_REMEDY, SLOW_REMEDY, redisRemedy } from './redis/errors.js';
import type { Era } from './redis/group-states.js';
import { keyPrefixOf } from './redis/namespace.js';
import { RedisStore } from './redis/store.js';
import type { StoreEvents } from './store.js';
import { TieredStore } from './tiered-store.js';

export interface RedisOptions extends RedisCommandsOptions {
  /** Age up to which an entry in memory counts as fresh while there is no lease (ms). */
  disconnectedMaxAgeMs: number;
  disconnectedWrites: DisconnectedWrites;
}

interface CacheDeps {
  events: StoreEvents;
  bounds: MemoryBounds;
  redis?: RedisOptions | undefined;
  /** Fence lifetime (ms): how long a write with an unknown outcome prevents loads of its key from being stored. */
  fenceLifeMs: number;
  now: () => number;
  clock?: Clock | undefined;
  onEvict: (list: ListName) => void;
  onRedisState: (state: 'up' | 'lost') => void;
}

export interface Cache {
  store: TieredStore;
  memory: MemoryStore;
  /** Returns the time (ms since the epoch) before which entries may have missed an invalidation. */
  trustedSince: () => number;
  /** Returns the entry in each tier. Does not count as a use. */
  inspect: (key: string) => Promise<{ memory: InspectedEntry | undefined; redis: Entry | undefined }>;
  redisState: () => 'up' | 'down' | 'disabled';
  /** Whether reads currently use Redis. */
  isRedisReadable: () => boolean;
  /** Whether Redis contains a usable entry. */
  holdsRedisEntry: () => Promise<boolean>;
  /** Undefined without Redis. */
  commands: RedisCommands | undefined;
  /** Returns the era of Redis; undefined without Redis, or while it is unknown. */
  era: () => Era | undefined;
  close: () => Promise<void>;
}

/** Time after `upstream.writeTimeout` during which the upstream may still execute a write. */
const FENCE_MARGIN_MS = 15_000;

/** Creates the cache. Instances with the same Handle servers share their entries. */
export function createCache(config: Config, servers: readonly ServerConfig[], context: Context): Cache {
  const { maxBytes, found, notFound } = config.cache;
  const { metrics, clock } = context;
  const logState = createStateLog(context);
  const cache = assembleCache({
    events: context.hooks,
    bounds: { maxBytes, found, notFound },
    redis: redisOptions(config, servers, context),
    fenceLifeMs: maxWriteMs(servers) + FENCE_MARGIN_MS,
    now: clock.now,
    onEvict: (list) => metrics.countEviction(list),
    onRedisState(state) {
      metrics.setRedisState(state);
      logState(state);
    },
  });
  metrics.registerStoreUsage(() => cache.memory.usage());
  return cache;
}

/** Returns the Redis options; undefined if no Redis is configured. */
function redisOptions(
  config: Config,
  servers: readonly ServerConfig[],
  { log, metrics }: Context,
): RedisOptions | undefined {
  const { redis, upstream } = config;
  const address = redisAddress(redis);
  if (address === undefined) return undefined;
  metrics.setRedisState('down');
  const { keyPrefix, disconnectedMaxAgeMs, disconnectedWrites } = redis;
  return {
    ...address,
    keyPrefix: keyPrefixOf(servers, config),
    // A derived prefix already identifies the upstream and needs no owner.
    upstream: keyPrefix && describeUpstream(servers, upstream.caseSensitive),
    disconnectedMaxAgeMs,
    disconnectedWrites,
    onError: (command) => metrics.countRedisError(command),
    onTrouble: (reason, count) => {
      const remedy = redisRemedy(reason, addressKey(address));
      log.warn({ reason, remedy, count: count > 1 ? count : undefined }, 'redis error');
    },
    onEvictionPolicy: (policy) =>
      log.warn({ policy, remedy: EVICTION_REMEDY }, 'redis may evict locks or coordination keys'),
    onForeign: (found) =>
      log.warn(found, 'redis.keyPrefix belongs to another upstream, using a separate prefix'),
  };
}

export function assembleCache(deps: CacheDeps): Cache {
  const { now, clock, bounds, onEvict, fenceLifeMs } = deps;
  const memory = new MemoryStore({ bounds, now, onEvict });
  const { apply, bans } = createMessageApplier(memory, deps.events);
  const onState = createStateReport(deps.onRedisState, () => isUp());
  const instance = createInstance({ redis: deps.redis, now, clock, onState, deliver: apply });
  const { hub, commands, era, close } = instance;
  const isUp = (): boolean => commands !== undefined && commands.isUp() && hub.isLinked();
  const redis = commands && new RedisStore({ commands, bans, isLinked: () => hub.isLinked(), now });
  return {
    store: new TieredStore({
      memory,
      hub,
      redis,
      events: deps.events,
      fenceLifeMs,
      disconnectedMaxAgeMs: deps.redis?.disconnectedMaxAgeMs,
      now,
    }),
    memory,
    trustedSince: () => hub.trustedSince(),
    inspect: async (key) => ({ memory: memory.inspect(key), redis: (await redis?.get(key))?.entry }),
    redisState: () => (commands === undefined ? 'disabled' : isUp() ? 'up' : 'down'),
    isRedisReadable: () => redis?.isReadable() === true,
    holdsRedisEntry: async () => (await redis?.holdsEntry()) === true,
    commands,
    era,
    close,
  };
}

/** Returns a function that reports when Redis comes up or is lost; not an outage before the first contact. */
function createStateReport(onRedisState: CacheDeps['onRedisState'], isUpNow: () => boolean): () => void {
  let wasUp: boolean | undefined;
  return () => {
    const isUp = isUpNow();
    if (isUp === wasUp) return;
    if (isUp || wasUp === true) onRedisState(isUp ? 'up' : 'lost');
    wasUp = isUp;
  };
}

/** Minimum interval between log lines of a loss: a slow Redis may be lost twice a second for days. */
const LOG_INTERVAL_MS = 60_000;

/** Returns a function that logs losses of Redis, those within a minute of a line together, and their ends. */
export function createStateLog({ log, clock }: Context): CacheDeps['onRedisState'] {
  let isUp = false;
  let losses = 0;
  let isPaused = false;
  let isEndDue = true;

  function logEnd(): void {
    if (isEndDue) log.info('redis connected');
    isEndDue = false;
  }
  function logLosses(): void {
    isPaused = losses > 0;
    if (losses === 0) return;
    log.warn(
      losses > 1 ? { losses, remedy: SLOW_REMEDY } : {},
      'redis unavailable, answering from memory and upstream',
    );
    losses = 0;
    isEndDue = true;
    clock.after(LOG_INTERVAL_MS, () => {
      logLosses();
      if (isUp) logEnd();
    });
  }
  return function logState(state) {
    isUp = state === 'up';
    if (!isUp) losses++;
    if (isUp) logEnd();
    else if (!isPaused) logLosses();
  };
}

interface InstanceDeps {
  redis?: RedisOptions | undefined;
  now: () => number;
  clock?: Clock | undefined;
  deliver: Deliver;
  /** Called when the Redis state or the lease may have changed. */
  onState: () => void;
}

export interface Instance {
  hub: Hub;
  commands?: RedisCommands;
  era: Cache['era'];
  close: () => Promise<void>;
}

/** Creates the coherence parts of this instance: the hub, the Redis commands and the membership. */
export function createInstance({
  redis,
  deliver,
  onState,
  now,
  clock = systemClock,
}: InstanceDeps): Instance {
  if (redis === undefined)
    return { hub: new Hub({ now, deliver }), era: () => undefined, close: () => Promise.resolve() };
  const pending = new PendingInvalidations();
  const commands: RedisCommands = new RedisCommands({
    ...redis,
    clock,
    onState(isUp) {
      if (isUp) void member.renewNow();
      onState();
    },
  });
  // The lease compares the wall clock with the monotonic clock.
  const memberClock = { ...clock, now: clock.wall };
  const member = new Member({ commands, clock: memberClock, pending, deliver, onRenewed: onState });
  const { disconnectedMaxAgeMs, disconnectedWrites } = redis;
  const hub = new Hub({
    now,
    deliver,
    remote: { member, pending, disconnectedMaxAgeMs, disconnectedWrites },
  });
  return {
    hub,
    commands,
    era: member.era,
    async close() {
      await member.close();
      await commands.close();
    },
  };
}
