// Creates the cache of a process: memory, Redis as second tier, and coherence with all other processes.
import { type Deleted, type MessageApplier, createMessageApplier } from './apply-message.js';
import type { Clock } from './clock.js';
import type { Coherence } from './coherence/hub.js';
import { BAN_ALL, type Message } from './coherence/message.js';
import type { Entry } from './entry.js';
import { type RedisOptions, createInstance } from './instance.js';
import type { MemoryBounds, MemoryUsage } from './memory/lru-index.js';
import { type InspectedEntry, MemoryStore } from './memory/memory-store.js';
import { RedisCommands } from './redis/commands.js';
import { RedisStore } from './redis/store.js';
import type { Store } from './store.js';
import { TieredStore, type TieredTicket } from './tiered-store.js';

/** Coherence of one of several workers: the hub is in the primary. */
export interface WorkerCoherence extends Coherence {
  /** Called when the state of the lease may have changed. */
  onState: (listener: () => void) => void;
}

export interface CacheDeps {
  bounds: MemoryBounds;
  redis?: RedisOptions | undefined;
  /** Life of a fence (ms): how long a write with an unknown end keeps loads of its key from being stored. */
  fenceLifeMs: number;
  now: () => number;
  clock?: Clock | undefined;
  worker?: WorkerCoherence | undefined;
  /** Called when new readers of the key must not join a load in flight. */
  onInvalidated: (key: string) => void;
  /** The same for all keys with the prefix. */
  onBanned: (prefix: string) => void;
  /** Called when a write or an operator deletes entries. */
  onDeleted?: ((deleted: Deleted) => void) | undefined;
  onEvict: (store: MemoryUsage['store']) => void;
  onRedisState: (state: 'up' | 'lost') => void;
}

export interface Cache {
  store: Store<TieredTicket>;
  memory: MemoryStore;
  /** Entries from before this moment (ms) may have missed an invalidation. */
  trustedSince: () => number;
  /** Applies a message that the primary has sent to this worker. */
  apply: (message: Message) => void;
  /** Every entry of this process may be outdated. */
  clear: () => void;
  /** The entry in each tier; does not count as a use. */
  inspect: (key: string) => Promise<Inspection>;
  redisState: () => 'up' | 'away' | 'unused';
  /** Whether entries of Redis are used now. */
  isRedisReadable: () => boolean;
  /** Whether Redis has something to answer with. */
  holdsRedisEntry: () => Promise<boolean>;
  /** Undefined without Redis. */
  commands: RedisCommands | undefined;
  close: () => Promise<void>;
}

interface Inspection {
  memory: InspectedEntry | undefined;
  redis: Entry | undefined;
}

export function createCache(deps: CacheDeps): Cache {
  const { now, bounds, onEvict, fenceLifeMs } = deps;
  const memory = new MemoryStore({ bounds, now, onEvict });
  const applied = createMessageApplier({ ...deps, memory });
  const { coherence, commands, close } = connect(deps, applied);
  const redis =
    commands && new RedisStore({ commands, bans: applied.bans, isLinked: () => coherence.isLinked(), now });
  const isUp = (): boolean => commands !== undefined && commands.isUp() && coherence.isLinked();
  return {
    store: new TieredStore({
      memory,
      coherence,
      redis,
      fenceLifeMs,
      lostMaxAgeMs: deps.redis?.lostMaxAgeMs,
      now,
    }),
    memory,
    trustedSince: () => coherence.trustedSince(),
    apply: applied.apply,
    clear: () => {
      memory.ban({ prefix: '', isSoft: false });
      deps.onBanned('');
    },
    inspect: async (key) => ({ memory: memory.inspect(key), redis: (await redis?.get(key))?.entry }),
    redisState: () => (commands === undefined ? 'unused' : isUp() ? 'up' : 'away'),
    isRedisReadable: () => isUp() && redis?.isReadable() === true,
    holdsRedisEntry: async () => (await redis?.holdsEntry()) === true,
    commands,
    close,
  };
}

interface Connected {
  coherence: Coherence;
  commands?: RedisCommands | undefined;
  close: () => Promise<void>;
}

/** A worker has its own connection for commands; hub and link are in the primary. */
function connect(deps: CacheDeps, { apply }: MessageApplier): Connected {
  const { worker, onRedisState } = deps;
  let wasUp: boolean | undefined;
  const onState = (): void => {
    if (connected.commands === undefined) return;
    const isUp = connected.commands.isUp() && connected.coherence.isLinked();
    if (isUp === wasUp) return;
    if (isUp || wasUp === true) onRedisState(isUp ? 'up' : 'lost');
    wasUp = isUp;
  };
  const connected = worker ? connectWorker(deps, worker, onState) : connectAlone(deps, apply, onState);
  worker?.onState(onState);
  return connected;
}

function connectWorker({ redis, clock }: CacheDeps, worker: WorkerCoherence, onState: () => void): Connected {
  if (redis === undefined) return { coherence: worker, close: () => Promise.resolve() };
  const onClaimed = (): void => {
    // A ban that cannot be published is pending in the primary.
    worker.publish(BAN_ALL).catch(() => undefined);
  };
  const commands = new RedisCommands({ ...redis, clock, onEvictionPolicy: undefined, onState, onClaimed });
  return { coherence: worker, commands, close: () => commands.close() };
}

function connectAlone(
  { redis, now, clock }: CacheDeps,
  apply: MessageApplier['apply'],
  onState: () => void,
): Connected {
  const { hub, commands, close } = createInstance({
    redis,
    now,
    clock,
    onState,
    deliver(message, from) {
      // This process has just stored the new entry.
      if (message.kind !== 'replaced' || from === undefined) apply(message);
      return Promise.resolve();
    },
  });
  return { coherence: hub, commands, close };
}
