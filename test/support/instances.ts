// Opens cache instances without a server: memory, the hub, and the link to a real Redis.
import { createStoreEvents } from '../../src/cache/store.js';
import { createMessageApplier } from '../../src/cache/apply-message.js';
import { type Clock, systemClock } from '../../src/clock.js';
import type { Message } from '../../src/cache/coherence/message.js';
import { type Instance, type RedisOptions, createInstance } from '../../src/cache/cache.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import type { RedisCommands } from '../../src/cache/redis/commands.js';
import { RedisStore } from '../../src/cache/redis/store.js';
import { TieredStore } from '../../src/cache/tiered-store.js';
import { PATIENT_MS } from './redis-server.js';
import { NOW } from './store-contract.js';

export const bounds = { maxBytes: 10_000_000, found: { maxEntries: 1000 }, notFound: { maxEntries: 1000 } };
/** Fence lifetime, longer than any stall of a busy machine, because Redis entries expire with the fence. */
export const FENCE_LIFE_MS = 60_000;
export const PREFIX = 'test:';

/** Slowdown of the clock, so that no lease expires while a busy machine stalls. */
const SLOWNESS = 20;
const steady = (): number => performance.now() / SLOWNESS;
/** Starts a minute after NOW. */
const slowTime = (): number => NOW + 60_000 + steady();
export const slowClock: Clock = { ...systemClock, monotonic: steady, now: slowTime, wall: slowTime };

export interface OpenInstance extends Instance {
  memory: MemoryStore;
  store: TieredStore;
  /** Set if the instance uses Redis. */
  redisStore?: RedisStore;
  commands?: RedisCommands;
  /** Messages delivered to this process, in order. */
  delivered: Message[];
}

export interface InstanceOptions {
  /** Redis URL; without it, the instance uses memory only. */
  url?: string;
  redis?: Partial<RedisOptions>;
  clock?: Clock;
  onState?: () => void;
}

export function openInstance(options: InstanceOptions = {}): OpenInstance {
  const { url, redis, clock = slowClock, onState = () => undefined } = options;
  const { now } = clock;
  const memory = new MemoryStore({ bounds, now });
  const applied = createMessageApplier(memory, createStoreEvents());
  const delivered: Message[] = [];
  const instance = createInstance({
    clock,
    now,
    onState,
    ...(url !== undefined && { redis: { ...redisOptions(url), ...redis } }),
    deliver(message) {
      delivered.push(message);
      return applied.apply(message);
    },
  });
  const { commands, hub } = instance;
  const redisStore =
    commands && new RedisStore({ commands, bans: applied.bans, isLinked: () => hub.isLinked(), now });
  const store = new TieredStore({
    memory,
    hub,
    redis: redisStore,
    fenceLifeMs: FENCE_LIFE_MS,
    now,
  });
  return { ...instance, memory, store, delivered, ...(redisStore && { redisStore }) };
}

/** Opens an instance and waits until it holds a lease. */
export function openLinked(options: InstanceOptions & { url: string }): Promise<OpenInstance> {
  return new Promise((resolve) => {
    const instance: OpenInstance = openInstance({
      ...options,
      onState() {
        if (instance.hub.isLinked()) resolve(instance);
        options.onState?.();
      },
    });
  });
}

export const redisOptions = (url: string): RedisOptions => ({
  url,
  keyPrefix: PREFIX,
  commandTimeoutMs: PATIENT_MS,
  disconnectedMaxAgeMs: 0,
  disconnectedWrites: 'wait',
});
